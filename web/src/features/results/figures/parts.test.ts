import { describe, expect, it } from 'vitest'
import { panelsOf } from '@/features/results/model'
import { summaryOf } from '@/features/results/fixture'
import { looks } from '@/lib/palette'
import { inKilobytes } from '@/lib/number'
import { boxesOption, boxesWords, dotHint } from './boxes'
import { deepHeight, deepOption, headingOf, short } from './deep'
import { fileName, sheetSvg } from './exporter'
import { paper } from './ink'
import { mixed } from '@/lib/palette'
import { linesOption, placesOf, pointHint, wantsLog } from './lines'
import { escape, pointsOf, wrap } from './parts'

it.each([
  ['TCP CUBIC', 14, ['TCP CUBIC']],
  ['TCP-radio with new RTO', 12, ['TCP-radio', 'with new RTO']],
  ['Averyveryverylongname', 8, ['Averyver', 'yverylon', 'gname']],
  ['one two three four five six', 5, ['one', 'two', 'thre…']],
])('breaks %s', (s, most, lines) => expect(wrap(s, most)).toEqual(lines))
it.each([
  [1.2e7, '12M'],
  [12000, '12k'],
  [950, '950'],
  [0.00012, '1e-4'],
  [-20000, '-20k'],
  [0, '0'],
])('shortens %d to %s', (x, s) => expect(short(x)).toBe(s))
it('counts the points of lines and clouds, without gaps', () => {
  const data = [
    [1, 2],
    [2, Number.NaN],
  ]
  expect(
    pointsOf({
      series: [
        { type: 'line', data },
        { type: 'scatter', data },
        { type: 'custom', data },
      ],
    }),
  ).toBe(2)
  expect(pointsOf({})).toBe(0)
})
it('makes file names of any words', () => {
  expect(fileName('K Lot · "RT-1949" / 1 MiB', 'svg')).toBe('k-lot-rt-1949-1-mib.svg')
  expect(fileName('…', 'png')).toBe('figure.png')
})
it('mixes colours for a dark ground and for the sun', () =>
  expect([mixed('#0072b2', 255, 0.5), mixed('#0072b2', 0, 0.5)]).toEqual(['#80b9d9', '#003959']))
it('wants a logarithmic axis only where numbers spread', () =>
  expect([wantsLog([1, 10, 100]), wantsLog([1, 2, 3]), wantsLog([0, 10, 1000])]).toEqual([true, false, false]))
it('places what is swept by its values, unless these lie on each other', () => {
  // Where 0 and 0.01 would lie on each other, beside 0.5.
  expect(placesOf(['0', '0.01', '0.5'], [0, 0.01, 0.5])).toEqual({ at: [1, 2, 3], log: false, even: true })
  expect(placesOf(['1', '2', '5'], [1, 2, 5])).toEqual({ at: [1, 2, 5], log: false, even: false })
  expect(placesOf(['1', '10', '100'], [1, 10, 100]).log).toBe(true)
  expect(placesOf(['a', 'b'], [])).toEqual({ at: [1, 2], log: false, even: true })
})

const hostile = '<img src=x onerror=alert(1)>'
describe('names out of plans', () => {
  it('are text in hints', () => {
    expect(escape(hostile)).not.toContain('<')
    expect(pointHint(hostile, [[hostile, hostile]])).not.toContain('<img')
    expect(
      dotHint(
        {
          run: '',
          trial: 0,
          attempt: 1,
          iteration: 1,
          verdict: 2,
          value: 0,
          ideal: 0,
          coded: 0,
          elapsed: 0,
          counts: false,
          reason: hostile,
        },
        hostile,
      ),
    ).not.toContain('<img')
  })
})

const run = summaryOf({
  id: 'a',
  attempts: [1, 2, 3].flatMap((iteration) => [
    { iteration, treatment: 0, kbps: 100 + iteration },
    { iteration, treatment: 1, kbps: iteration === 2 ? 0 : 50 },
  ]),
})
const slots = panelsOf([run], { by: 'cell', hidden: [], marks: new Map() })[0]!.slots
const input = {
  slots,
  looks: looks(['cubic', 'udt']),
  iterations: 3,
  unit: inKilobytes,
  top: 0,
  ideal: true,
  coded: true,
  published: true,
}

describe("the paper's figure", () => {
  it('has every iteration as a point and every failure as a mark', () => {
    const o = boxesOption(input, paper, { width: 172, height: 340 })
    const series = o.series as { name: string; data: number[][] }[]
    const of = (name: string) => series.find((s) => s.name === name)!.data
    expect(of('cubic').map((d) => d[1])).toEqual([101, 102, 103])
    expect(of('udt')).toHaveLength(2)
    expect(of('udt failed').map((d) => d[1])).toEqual([0])
    // CUBIC's trials of 1 MiB in 2 and in 2.5 s; each line only where it is asked for.
    expect(of('ideal')[0]![1]).toBeCloseTo(512)
    expect(of('coded bound')[0]![1]).toBeCloseTo(409.6)
    const plain = boxesOption({ ...input, ideal: false, coded: false }, paper, { width: 172, height: 340 })
    const names = (plain.series as { name: string }[]).map((s) => s.name)
    expect(names).not.toContain('ideal')
    expect(names).not.toContain('coded bound')
    expect(of('cubic').map((d) => d[0])).toEqual([-0.25, 0, 0.25])
  })
  it('draws every one of thousands of points, together, whatever the marker', () => {
    const treatments = looks(['cubic', 'udt'])
    const many = slots.map((s) => ({ ...s, dots: Array.from({ length: 1500 }, () => s.dots[0]!) }))
    const symbolsOf = (slots: typeof many) =>
      (
        boxesOption({ ...input, slots }, paper, { width: 600, height: 340 }).series as {
          name: string
          symbol: string
        }[]
      )
        .filter((s) => treatments.has(s.name))
        .map((s) => s.symbol)
    expect(symbolsOf(slots)).toEqual([...treatments.values()].map((l) => l.marker))
    expect(symbolsOf(many)).toEqual(['circle', 'circle'])
  })
  it('says the same in words', () =>
    expect(boxesWords('K Lot', slots)).toBe(
      'Throughput, K Lot. CUBIC: mean 102.00 KB/s, n 3 of 3; UDT: mean 50.00 KB/s, n 2 of 3.',
    ))
  it('is a file of its own, on white, with legend and caption', async () => {
    const look = looks(['cubic', 'udt'])
    const { svg, width, height } = await sheetSvg({
      title: `Throughput ${hostile}`,
      caption: 'quickstart, campaign c1, n 5 valid of 6 trials.',
      columns: 1,
      panelWidth: 500,
      legend: [{ name: 'cubic', label: 'CUBIC & co', look: look.get('cubic')! }],
      figures: [
        { key: 'k', title: 'K Lot', label: '', height: 340, build: (ink, size) => boxesOption(input, ink, size) },
      ],
    })
    const doc = new DOMParser().parseFromString(svg, 'image/svg+xml')
    expect(doc.querySelector('parsererror')).toBeNull()
    expect(svg).toContain('n 5 valid of 6 trials.')
    expect(svg).toContain('n 2/3')
    expect(svg).toContain('CUBIC &#38; co')
    expect(svg).not.toContain('<img')
    expect([width, height > 400]).toEqual([532, true])
  })
})

it('draws lines with gaps, intervals and failures', () => {
  const look = looks(['a']).get('a')!
  const o = linesOption(
    {
      lines: [
        {
          name: 'a',
          look,
          points: [
            [1, 2],
            [2, Number.NaN],
            [3, 4],
          ],
          low: [1, 1, 3],
          high: [3, 3, 5],
          failed: [[2, 0]],
        },
      ],
      x: { name: 'x' },
      y: { name: 'y' },
      hintOf: () => '',
    },
    paper,
    { width: 400, height: 300 },
  )
  const series = o.series as { type: string; data: unknown[] }[]
  expect(series.map((s) => [s.type, s.data.length])).toEqual([
    ['line', 3],
    ['custom', 3],
    ['scatter', 1],
  ])
})

it('counts have no fractions on their axis', () => {
  const panel = (whole: boolean) => ({ key: 'p', title: 'p', unit: '', whole, lines: [] })
  const panels = [panel(true), panel(false)]
  const option = deepOption({ panels, end: 1, from: 0, to: 1, slider: false }, paper, { width: 600, height: 300 })
  expect((option.yAxis as { minInterval?: number }[]).map((a) => a.minInterval)).toEqual([1, undefined])
})

it('names every line of a panel, on a phone in lines of their own', () => {
  const line = (name: string) => ({ name, points: [], step: false })
  const panel = {
    key: 'w',
    title: 'Window',
    unit: 'KB',
    whole: false,
    lines: ['congestion window', 'slow start threshold', 'in flight'].map(line),
  }
  expect(headingOf(panel, 900).lines.map((l) => l.length)).toEqual([3])
  const narrow = headingOf(panel, 320)
  expect(narrow.lines.flat()).toEqual(panel.lines)
  expect(narrow.lines.length).toBeGreaterThan(1)
  expect(deepHeight([panel], 320)).toBeGreaterThan(deepHeight([panel], 900))
  const option = deepOption({ panels: [panel], end: 1, from: 0, to: 1, slider: false }, paper, {
    width: 320,
    height: 300,
  })
  const [title] = option.title as { text: string }[]
  for (const l of panel.lines) expect(title!.text).toContain(`{n|${l.name}}`)
})
