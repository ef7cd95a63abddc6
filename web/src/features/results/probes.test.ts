import { create } from '@bufbuild/protobuf'
import { mount } from '@vue/test-utils'
import { describe, expect, it } from 'vitest'
import ProbesTable from './ProbesTable.vue'
import { ProbeSummarySchema } from '@/gen/linktrial/v1/result_pb'

const alone = create(ProbeSummarySchema, {
  probe: 'voice',
  label: 'Voice',
  measured: 2,
  planned: 2,
  dscp: 46,
  sent: 1000n,
  received: 980n,
  lost: 20n,
  unsent: 500n,
  lossShare: 0.02,
  longestLossBurst: 3n,
  delayMin: 0.0725,
  delayMean: 0.0726,
  delayP50: 0.0725,
  delayP95: 0.073,
  delayP99: 0.074,
  delayMax: 0.08,
  jitter: 0.0001,
})
const beside = create(ProbeSummarySchema, {
  probe: 'voice',
  label: 'Voice',
  beside: 'TCP CUBIC',
  measured: 0,
  planned: 2,
  failures: ['2× reset'],
})

describe('the table of probes', () => {
  const text = (single: boolean) =>
    mount(ProbesTable, { props: { probes: [alone, beside], clock: 'Both ends have one clock.', single } })
  it('shows delays in ms, loss and what ran beside', () => {
    const rows = text(false)
      .findAll('tbody tr')
      .map((r) => r.text().replace(/\s+/g, ' '))
    expect(rows[0]).toContain('Voice, alone')
    expect(rows[0]).toContain('DSCP 46')
    expect(rows[0]).toContain('500 of 1500 packets not sent')
    expect(rows[0]).toMatch(/2\s?72\.5\s?72\.6\s?72\.5\s?73\.0\s?74\.0\s?80\.0\s?0\.1/)
    expect(rows[1]).toContain('Voice beside TCP CUBIC')
    expect(rows[1]).toContain('2× reset')
    expect(rows[1]).toContain('0/2')
  })
  it('says how certain the delays are, and has no rank or throughput', () => {
    const all = text(false).text()
    expect(all).toContain('Both ends have one clock.')
    expect(all).not.toMatch(/KB\/s|Ideal|ratio/i)
  })
  it('has no number of trials for one attempt', () => {
    expect(
      text(true)
        .findAll('thead th')
        .map((h) => h.text()),
    ).not.toContain('n')
  })
})
