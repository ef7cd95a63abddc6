// What the table of times to delivery shows.
import { decimal, NOTHING, percent, rateIn, wholePercent, type RateUnit } from '@/lib/number'
import type { Delivery, RunSummary } from '@/gen/linktrial/v1/result_pb'
import type { Line } from './figures/lines'
import { pText } from './table'
import type { Look } from '@/lib/palette'

export interface DeliveryRow {
  name: string
  label: string
  d: Delivery
  /** The others are held against this one. */
  reference: boolean
}

/** The treatments of a run with times to delivery, without hidden ones. */
export function deliveryRows(run: RunSummary, hidden: string[]): DeliveryRow[] {
  // The others are paired with the reference, which is paired with none.
  const paired = run.treatments.some((t) => t.delivery?.pairs)
  const alone = run.treatments.filter((t) => t.delivery && !t.delivery.pairs)
  const reference = paired && alone.length === 1 ? alone[0]!.name : ''
  return run.treatments.flatMap((t) =>
    t.delivery && !hidden.includes(t.name)
      ? [{ name: t.name, label: t.label || t.name, d: t.delivery, reference: t.name === reference }]
      : [],
  )
}

export interface DeliveryCell {
  text: string
  /** The 95 % interval. */
  small?: string
}

const range = (low: number | undefined, high: number | undefined) =>
  low === undefined || high === undefined ? undefined : `${decimal(low)} – ${decimal(high)}`

export const deliveryColumns = [
  {
    name: 'share',
    title: 'Delivered',
    hint: 'Share of the valid and failed trials that were delivered by the horizon, up to which results wait; small: 95 % interval, Wilson',
  },
  {
    name: 'mean',
    title: 'Mean',
    hint: 'Restricted mean: of the time to delivery or the horizon, whichever is shorter; small: 95 % interval, Student’s t',
  },
  {
    name: 'median',
    title: 'Median, s',
    hint: 'By when half were delivered; none where fewer were; small: 95 % interval',
  },
  { name: 'goodput', title: 'Goodput', hint: 'Payload delivered over the time spent, failed trials included' },
  {
    name: 'sooner',
    title: 'Sooner, s',
    hint: 'Than the reference, by iteration, also where one failed; small: 95 % interval, Student’s t for pairs',
  },
  {
    name: 'p',
    title: 'p',
    hint: 'Student’s test for pairs, two-sided; small: corrected after Holm for the comparisons of the run',
  },
] as const

export type DeliveryColumn = (typeof deliveryColumns)[number]['name']

export function deliveryCell(r: DeliveryRow, column: DeliveryColumn, unit: RateUnit): DeliveryCell {
  const d = r.d
  switch (column) {
    case 'share':
      return { text: percent(d.share, 0), small: `${wholePercent(d.shareLow)} – ${wholePercent(d.shareHigh)}` }
    case 'mean':
      return { text: decimal(d.mean), small: range(d.meanLow, d.meanHigh) }
    case 'median':
      return {
        text: decimal(d.median),
        small:
          d.medianLow === undefined ? undefined : (range(d.medianLow, d.medianHigh) ?? `from ${decimal(d.medianLow)}`),
      }
    case 'goodput':
      return { text: d.goodput === undefined ? NOTHING : rateIn(unit, d.goodput) }
    case 'sooner':
      return r.reference ? { text: 'reference' } : { text: decimal(d.sooner), small: range(d.soonerLow, d.soonerHigh) }
    case 'p':
      return {
        text: r.reference ? '' : pText(d.soonerP),
        small: d.soonerPHolm !== undefined && d.soonerPHolm !== d.soonerP ? `Holm ${pText(d.soonerPHolm)}` : undefined,
      }
  }
}

/** Up to when deliveries are waited for: "300 s". */
export const horizonText = (rows: DeliveryRow[]) => [...new Set(rows.map((r) => `${r.d.horizon} s`))].join(', ')

/** The most lines of a figure of which intervals can be told apart, and the most steps with one. */
const MOST_INTERVALS = { lines: 3, steps: 25 }

/** The share delivered over time up to a time, as a line: [seconds, share, low, high] a step. */
export function deliveryLine(d: Delivery, until: number, name: string, look: Look, lines: number): Line {
  const points = [
    [0, 0, NaN, NaN],
    ...d.curveTime.map((t, i) => [t, d.curveShare[i]!, d.curveLow[i]!, d.curveHigh[i]!]),
  ]
  points.push([until, points.at(-1)![1]!, NaN, NaN])
  const bars = lines <= MOST_INTERVALS.lines && points.length <= MOST_INTERVALS.steps
  return {
    name,
    look,
    points,
    step: 'end',
    markEvery: Math.max(1, Math.ceil(points.length / 8)),
    ...(bars && { low: points.map((p) => p[2]!), high: points.map((p) => p[3]!) }),
  }
}

/** Until when figures of these show: the last delivery, or the horizon where there is none. */
export const lastDelivery = (of: Delivery[]) =>
  Math.max(0, ...of.map((d) => d.curveTime.at(-1) ?? 0)) || Math.max(0, ...of.map((d) => d.horizon))
