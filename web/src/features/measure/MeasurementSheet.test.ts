import { create } from '@bufbuild/protobuf'
import { mount, RouterLinkStub } from '@vue/test-utils'
import { expect, test } from 'vitest'
import { GetMeasurementResponseSchema } from '@/gen/linktrial/v1/measure_pb'
import MeasurementSheet from './MeasurementSheet.vue'

test('the sheet has each use with its outcome, checks and what is lacking, and both ways of a value', () => {
  const measurement = create(GetMeasurementResponseSchema, {
    campaignId: 'm4t7xk2p',
    radio: 'Radio without a profile',
    place: 'real, unnamed radio',
    uses: [
      { name: 'voice', outcome: 'no', checks: [{ outcome: 'no', text: 'delay: 450 ms, expected at most 400 ms' }] },
      { name: 'files', outcome: 'undecided', notMeasured: ['Transfers: the run ended before them.'] },
    ],
    values: [
      { group: 'capacity', metric: 'capacity', way: 'client → server', text: '16 kbit/s' },
      { group: 'capacity', metric: 'capacity', way: 'server → client', text: '15 kbit/s' },
    ],
    positions: [{ role: 'client', latitude: 39.03, longitude: -76.96 }],
    distanceMetres: 282.6,
    changedThresholds: ['Voice: quality each way, at least 3.1 MOS (default 3.6 MOS)'],
  })
  const w = mount(MeasurementSheet, { props: { measurement }, global: { stubs: { RouterLink: RouterLinkStub } } })
  const rows = w.findAll('tbody tr').map((r) => r.text().replace(/\s+/g, ' '))
  expect(rows[0]).toContain('no: delay: 450 ms, expected at most 400 ms')
  expect(rows[0]).toContain('✕ no')
  expect(rows[1]).toContain('? undecided')
  expect(rows[1]).toContain('not measured: Transfers: the run ended before them.')
  expect(
    w
      .findAll('tbody')[1]!
      .findAll('td')
      .map((d) => d.text()),
  ).toEqual(['capacity', 'capacity', '16 kbit/s', '15 kbit/s', ''])
  expect(w.text()).toContain('client at 39.030000, -76.960000; distance 283 m')
  expect(w.findAll('li').map((l) => l.text())).toEqual(['Voice: quality each way, at least 3.1 MOS (default 3.6 MOS)'])
  expect(w.findComponent(RouterLinkStub).props('to')).toBe('/runs/m4t7xk2p')
  w.unmount()
})
