import { create } from '@bufbuild/protobuf'
import { mount } from '@vue/test-utils'
import { expect, it } from 'vitest'
import DifferencesTab from './DifferencesTab.vue'
import { at, sectionsOf, signedPercent, signedRate, spoken } from './differences'
import { pText } from './table'
import { inKilobytes } from '@/lib/number'
import { summaryOf } from './fixture'
import { readView } from './view'
import { CampaignDifferenceSchema } from '@/gen/linktrial/v1/result_pb'

const line = (patch: object) =>
  create(CampaignDifferenceSchema, {
    where: 'Radio r1 at Place t1 · 1 MiB',
    treatment: 'udt',
    label: 'UDT',
    reference: 'one',
    campaign: 'two',
    referenceRun: 'one-1',
    run: 'two-1',
    referenceValid: 3,
    valid: 5,
    referenceAverage: 100 * 1024,
    average: 150 * 1024,
    difference: 50 * 1024,
    ciLow: 20 * 1024,
    ciHigh: 80 * 1024,
    changePercent: 50,
    pHolm: 0.0004,
    decided: true,
    ...patch,
  })
const all = [
  line({}),
  line({
    treatment: 'cubic',
    label: 'CUBIC',
    difference: -2 * 1024,
    ciLow: -100 * 1024,
    ciHigh: 96 * 1024,
    pHolm: 1,
    decided: false,
    changed: 'congestion: cubic → bbr',
  }),
  line({ where: 'elsewhere', run: 'two-2', referenceRun: 'one-2' }),
  line({
    campaign: 'three',
    run: 'three-1',
    difference: undefined,
    ciLow: undefined,
    ciHigh: undefined,
    average: undefined,
  }),
]

it('keeps conditions and campaigns apart, and follows the filters', () => {
  const runs = new Set(['one-1', 'two-1', 'three-1'])
  const s = sectionsOf(all, runs, [])
  expect(s.map((x) => [x.campaign, x.lines.length, x.reach / 1024])).toEqual([
    ['two', 2, 100],
    ['three', 1, 0],
  ])
  expect(sectionsOf(all, runs, ['cubic'])[0]!.lines).toHaveLength(1)
  expect(sectionsOf(all, new Set(['two-1']), [])).toEqual([])
})

it('writes differences with their signs', () => {
  expect([
    signedRate(inKilobytes, 1024),
    signedRate(inKilobytes, -1024),
    signedRate(inKilobytes, 0),
    signedRate(inKilobytes, undefined),
  ]).toEqual(['+1.00', '−1.00', '0.00', '–'])
  expect([signedPercent(50), signedPercent(-0.01)]).toEqual(['+50.0 %', '−0.0 %'])
  expect([pText(0.0004), pText(0.25)]).toEqual(['< 0.001', '0.250'])
  expect([at(0, 4), at(4, 4), at(-4, 4), at(1, 0)]).toEqual([50, 100, 0, 50])
  expect(spoken(inKilobytes, all[0]!)).toBe('+50.00 KB/s, 95 % interval +20.00 to +80.00: decided')
  expect(spoken(inKilobytes, all[3]!)).toContain('no valid trial')
})

it('shows each treatment of two campaigns in one row', () => {
  const runs = ['one-1', 'two-1', 'three-1'].map((id) => {
    const r = summaryOf({ id })
    r.run!.id = id
    return r
  })
  const w = mount(DifferencesTab, {
    props: {
      view: readView({}),
      runs,
      marks: new Map([
        ['one', 'A'],
        ['two', 'B'],
        ['three', 'C'],
      ]),
      looks: new Map(),
      legend: [],
      caption: '',
      name: 'plan',
      differences: all,
      alone: 2,
      names: new Map([['two', 'with BBR']]),
    },
  })
  expect(w.findAll('h3').map((h) => h.text())).toEqual([
    'Radio r1 at Place t1 · 1 MiB: B (with BBR) against A',
    'Radio r1 at Place t1 · 1 MiB: C against A',
  ])
  const rows = w.findAll('tbody tr')
  expect(rows[0]!.text()).toContain('+50.00')
  expect(rows[0]!.text()).toContain('decided')
  expect(rows[1]!.text()).toContain('congestion: cubic → bbr')
  expect(rows[2]!.text()).toContain('–')
  expect(w.text()).toContain('2 treatments have no counterpart')
})
