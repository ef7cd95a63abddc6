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
  it('has a column of voice where a probe was speech', () => {
    expect(
      text(false)
        .findAll('thead th')
        .map((h) => h.text()),
    ).not.toContain('MOS')
    const speech = create(ProbeSummarySchema, { ...alone, mos: 4.05, rFactor: 80.6 })
    const table = mount(ProbesTable, { props: { probes: [speech, beside], clock: '' } })
    const rows = table.findAll('tbody tr')
    expect(rows[0]!.text()).toContain('4.05')
    expect(rows[1]!.text()).toContain('–')
  })
  it('has messages in a table of their own', () => {
    const said = create(ProbeSummarySchema, {
      label: 'Messages',
      measured: 1,
      planned: 1,
      messages: [
        {
          bytes: 1024n,
          packets: 1n,
          sent: 80n,
          delivered: 78n,
          shareLow: 0.9134,
          shareHigh: 0.9931,
          timeMin: 0.0302,
          timeP50: 0.0405,
          timeP95: 0.06,
          timeMax: 0.075,
        },
        { bytes: 10240n, packets: 9n, sent: 0n, delivered: 0n },
      ],
    })
    expect(text(false).findAll('table')).toHaveLength(1)
    const table = mount(ProbesTable, { props: { probes: [beside, said], clock: '' } })
    const tables = table.findAll('table')
    expect(tables).toHaveLength(2)
    const rows = tables[1]!.findAll('tbody tr').map((r) => r.findAll('td').map((c) => c.text().replace(/\s/g, ' ')))
    expect(rows).toEqual([
      ['1024', '1', '80', '78', '97.50 %', '91.3 % to 99.3 %', '30.2', '40.5', '60.0', '75.0'],
      ['10240', '9', '0', '0', '–', '–', '–', '–', '–', '–'],
    ])
  })
  it('has what a search found in a table of its own', () => {
    const search = create(ProbeSummarySchema, {
      probe: 'capacity',
      label: 'Capacity',
      measured: 2,
      planned: 2,
      delayMin: 0.03,
      capacity: {
        measured: 2,
        maximum: 1_986_800,
        mean: 1_986_200,
        payload: 1_949_700,
        bottleneck: 1_995_500,
        lossShare: 0.001,
        delayMean: 0.0363,
        delayP95: 0.0369,
        packetBytes: 1500,
        largestPayload: 1472n,
        unfinished: 1,
      },
    })
    const table = mount(ProbesTable, { props: { probes: [alone, search], clock: '' } })
    const tables = table.findAll('table')
    expect(tables).toHaveLength(2)
    expect(tables[0]!.text()).not.toContain('Capacity')
    const cells = tables[1]!.findAll('tbody td').map((c) => c.text().replace(/\s/g, ' '))
    expect(cells).toEqual([
      '2',
      '1986.8',
      '1986.2',
      '1949.7',
      '1995.5',
      '0.100 %',
      '30.0',
      '36.3',
      '36.9',
      '1500',
      '1472',
    ])
    expect(tables[1]!.text()).toContain('1 of 2: the time was up')
    const only = mount(ProbesTable, { props: { probes: [search], clock: '', single: true } })
    expect(only.findAll('table')).toHaveLength(1)
    expect(only.findAll('thead th').map((h) => h.text())).not.toContain('n')
  })
})
