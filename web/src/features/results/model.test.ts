import { describe, expect, it } from 'vitest'
import { summaryOf } from './fixture'
import {
  blockMeans,
  campaignMarks,
  cdf,
  commonTitle,
  differences,
  filterRuns,
  nothingIn,
  nothingSwept,
  placeLabel,
  panelsOf,
  roundUp,
  topOf,
  treatmentsOf,
  withGaps,
} from './model'

const plain = { radios: [], topologies: [], sizes: [], settings: [] }
const one = (extra: object = {}) => ({ by: 'cell' as const, hidden: [], marks: new Map<string, string>(), ...extra })

describe('runs', () => {
  const runs = [
    summaryOf({ id: 'a', radio: 'r1' }),
    summaryOf({ id: 'b', radio: 'r2', topology: 't2', setting: '10 %' }),
    summaryOf({ id: 'c', radio: 'r2', topology: 't2', setting: '20 %', sizeBytes: 2048n }),
  ]
  it.each([
    [plain, 'abc'],
    [{ ...plain, radios: ['r2'] }, 'bc'],
    [{ ...plain, radios: ['r1', 'r2'], sizes: ['2048'] }, 'c'],
    [{ ...plain, settings: ['loss=10 %'] }, 'b'],
    [{ ...plain, settings: ['loss=10 %', 'loss=20 %'] }, 'bc'],
    [{ ...plain, settings: ['loss=10 %', 'rate=1'] }, ''],
  ])('%j leaves %s', (filter, left) =>
    expect(
      filterRuns(runs, filter)
        .map((r) => r.run!.id)
        .join(''),
    ).toBe(left),
  )

  it('of several campaigns carry letters, of one none', () => {
    expect([...campaignMarks(runs).values()]).toEqual([''])
    expect(campaignMarks([runs[0]!, summaryOf({ id: 'd', campaign: 'c2' })])).toEqual(
      new Map([
        ['c1', 'A'],
        ['c2', 'B'],
      ]),
    )
  })
})

describe('panels', () => {
  it('give each cell one, with the values of the server and every attempt', () => {
    const r = summaryOf({
      id: 'a',
      attempts: [
        { iteration: 1, treatment: 0, kbps: 100 },
        { iteration: 1, treatment: 1, kbps: 0, reason: 'transfer-timeout' },
        { iteration: 2, treatment: 0, kbps: 120 },
      ],
    })
    const [p] = panelsOf([r], one())
    expect([p!.title, p!.fullTitle]).toEqual(['Place t1 · Radio r1 · 1 MiB', 'Place t1 · Radio r1 · 1 MiB'])
    expect(p!.slots.map((s) => [s.label, s.valid, s.dots.length, s.failures.length])).toEqual([
      ['CUBIC', 2, 2, 0],
      ['UDT', 0, 0, 1],
    ])
    expect(p!.slots[1]!.failures[0]).toMatchObject({ reason: 'transfer-timeout', trial: 1, run: 'a' })
    expect(p!.slots[0]!.ideal).toBeCloseTo((1024 * 1024) / 2)
  })
  it('have titles of what tells them apart', () => {
    const panels = panelsOf([summaryOf({ id: 'a', setting: '10 %' }), summaryOf({ id: 'b', setting: '20 %' })], one())
    expect(panels.map((p) => p.title)).toEqual(['loss 10 %', 'loss 20 %'])
    expect(panels[1]!.fullTitle).toBe('Place t1 · Radio r1 · 1 MiB · loss 20 %')
  })
  it('put compared campaigns side by side, treatment by treatment', () => {
    const runs = [summaryOf({ id: 'a' }), summaryOf({ id: 'b', campaign: 'c2' })]
    const [p] = panelsOf(runs, one({ marks: campaignMarks(runs) }))
    expect(p!.slots.map((s) => s.label + s.mark)).toEqual(['CUBICA', 'CUBICB', 'UDTA', 'UDTB'])
  })
  it('put the radios of a place beside each other, each under its name', () => {
    const [p, ...rest] = panelsOf(
      [summaryOf({ id: 'a' }), summaryOf({ id: 'b', radio: 'r2' })],
      one({ by: 'topology' }),
    )
    expect(rest).toEqual([])
    expect(p!.title).toBe('Place t1 · 1 MiB')
    expect(p!.slots.map((s) => [s.group, s.label])).toEqual([
      ['Radio r1', 'CUBIC'],
      ['Radio r1', 'UDT'],
      ['Radio r2', 'CUBIC'],
      ['Radio r2', 'UDT'],
    ])
  })
  it('take the places of a radio as one sample where pooled', () => {
    const a = summaryOf({
      id: 'a',
      attempts: [1, 2].map((iteration) => ({ iteration, treatment: 0, kbps: 100 * iteration })),
    })
    const b = summaryOf({
      id: 'b',
      topology: 't2',
      attempts: [3, 0].map((x, i) => ({ iteration: i + 1, treatment: 0, kbps: 100 * x })),
    })
    const [p] = panelsOf([a, b], one({ by: 'radio', pooled: true, hidden: ['udt'] }))
    expect(p!.slots).toHaveLength(1)
    const s = p!.slots[0]!
    expect([s.valid, s.attempted, s.failed]).toEqual([3, 4, 1])
    expect(s.average / 1024).toBeCloseTo(200)
    expect(s.sd / 1024).toBeCloseTo(100) // sample standard deviation of 100, 200, 300
    expect([s.min / 1024, s.median / 1024, s.max / 1024]).toEqual([100, 200, 300])
  })
  it('keep a treatment that was not run, with its reason', () => {
    const [p] = panelsOf(
      [summaryOf({ id: 'a', missing: 'udt', attempts: [{ iteration: 1, treatment: 0, kbps: 5 }] })],
      one(),
    )
    expect(p!.slots[1]).toMatchObject({ missing: 'no driver', valid: 0 })
    expect(nothingIn(p!)).toBe('')
    expect(nothingIn({ ...p!, slots: [p!.slots[1]!] })).toBe('None of its treatments could be run.')
  })
})

it('names what runs have in common', () =>
  expect(commonTitle([summaryOf({ id: 'a' }), summaryOf({ id: 'b', topology: 't2', setting: '1' })])).toBe(
    'Radio r1 · 1 MiB',
  ))
it('lists treatments in the order of the plans', () =>
  expect(
    treatmentsOf([summaryOf({ id: 'a' }), summaryOf({ id: 'b', treatments: ['sctp', 'udt'] })]).map((t) => t.name),
  ).toEqual(['cubic', 'udt', 'sctp']))
it('makes a scale that holds what is shown on it', () => {
  const [p] = panelsOf([summaryOf({ id: 'a' })], one())
  p!.slots[0]!.ideal = 1e6
  expect(topOf(p!.slots, { ideal: false, coded: false, published: false })).toBeCloseTo((202 + 1) * 1024)
  expect(topOf(p!.slots, { ideal: true, coded: true, published: false })).toBe(1e6)
  expect(topOf(p!.slots, { ideal: false, coded: true, published: false })).toBeCloseTo((1024 * 1024) / 2.5)
})
it.each([
  [0, 1],
  [1, 1],
  [0.034, 0.04],
  [101, 120],
  [999, 1000],
  [1001, 1200],
  [5.1e6, 6e6],
])('rounds %d up to %d', (x, up) => expect(roundUp(x)).toBeCloseTo(up, 9))
it('makes a distribution', () =>
  expect(cdf([3, 1, 2, 2])).toEqual([
    [1, 0.25],
    [2, 0.5],
    [2, 0.75],
    [3, 1],
  ]))
it('leaves a gap where an iteration has no point', () =>
  expect(
    withGaps([
      [1, 5],
      [2, 5],
      [4, 5],
      [5, 5],
    ]),
  ).toEqual([
    [1, 5],
    [2, 5],
    [3, Number.NaN],
    [4, 5],
    [5, 5],
  ]))
it('takes the means of blocks', () =>
  expect(
    blockMeans(
      [
        [1, 10],
        [2, 20],
        [3, 60],
        [4, 80],
        [5, 7],
      ],
      3,
    ),
  ).toEqual([
    [1.5, 15],
    [3.5, 70],
    [5, 7],
  ]))

it('a panel of a sweep says why it has no curve', () => {
  const curve = (treatment: string, source: string, ...value: number[]) => ({ treatment, source, value })
  const all = { hidden: [] as string[], published: true }
  const nothing = (curves: ReturnType<typeof curve>[], view: Partial<typeof all> = {}) =>
    nothingSwept(curves, { ...all, ...view }, 'share of Ideal')
  const none = 'These runs have no valid trial with a value of share of Ideal.'
  expect(nothing([])).toBe(none)
  expect(nothing([curve('tcp', '', Number.NaN, Number.NaN)])).toBe(none)
  const [ours, theirs] = [curve('tcp', '', Number.NaN, 1), curve('haul', 'a paper', 2)]
  expect(nothing([ours, theirs])).toBe('')
  expect(nothing([ours, theirs], { hidden: ['tcp'] })).toBe('')
  expect(nothing([ours, theirs], { hidden: ['tcp', 'haul'] })).toBe('All its treatments with a value are hidden.')
  expect(nothing([ours, theirs], { hidden: ['tcp'], published: false })).toBe(
    'All its values are published ones, which are hidden.',
  )
  expect(nothing([ours, theirs], { published: false })).toBe('')
})

it('names the rule that stopped a run wherever its place is named', () => {
  const stopped = { ...summaryOf({ id: 'a' }), rule: 'stopped by its rule after 10' }
  const fixed = summaryOf({ id: 'b' })
  const panels = panelsOf([stopped, fixed], { by: 'cell', hidden: [], marks: new Map() })
  expect(panels.map((p) => p.title)).toEqual(['stopped by its rule after 10', 'Place t1 · Radio r1 · 1 MiB'])
  expect(commonTitle([stopped])).toContain('stopped by its rule after 10')
  expect(placeLabel(stopped)).toContain('stopped by its rule after 10')
  expect(differences([stopped, fixed])).toEqual(['stopped by its rule after 10', ''])
})
