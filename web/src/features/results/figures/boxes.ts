// The paper's figure: of each treatment a thin bar from the minimum to the
// maximum, a box of the mean ± one standard deviation, every iteration as a
// point (from left to right), failed attempts as crosses below the axis, and n.
import type {
  CustomSeriesRenderItemAPI,
  CustomSeriesRenderItemParams,
  CustomSeriesRenderItemReturn,
  EChartsOption,
  SeriesOption,
} from 'echarts'
import type { Dot, Slot } from '@/features/results/model'
import { pointState, trialStates } from '@/lib/states'
import { percent, rate, rateIn, type RateUnit } from '@/lib/number'
import { ofAll, seconds } from '@/lib/format'
import type { Look } from '@/lib/palette'
import { lookOf, type Ink } from './ink'
import { base, escape, hint, px, valueAxis, wrap, type Size } from './parts'

const leastSlot = 56
const characterPixels = 7
const marginLeft = 58
const marginRight = 14

/** Of one slot. */
const manyDots = 150
/** Of one treatment. */
const manyTogether = 1500

export interface BoxesInput {
  slots: Slot[]
  looks: Map<string, Look>
  /** Iterations of the longest run: the width that the points are spread over. */
  iterations: number
  unit: RateUnit
  /** End of the scale, in the unit; 0: its own. */
  top: number
  ideal: boolean
  coded: boolean
  published: boolean
}

/** A sender that nobody is: what it would have reached is a line over each slot. */
interface Bound {
  shown: 'ideal' | 'coded'
  of: (s: Slot) => number
  share: (s: Slot) => number | undefined
  label: string
  dash: number[]
  /** Where its words stand: where both lines coincide, both can be read. */
  align: 'left' | 'right'
  above: boolean
}

const bounds: Record<string, Bound> = {
  ideal: {
    shown: 'ideal',
    of: (s) => s.ideal,
    share: (s) => s.idealShare,
    label: 'Ideal',
    dash: [6, 3],
    align: 'left',
    above: true,
  },
  'coded bound': {
    shown: 'coded',
    of: (s) => s.coded,
    share: (s) => s.codedShare,
    label: 'coded',
    dash: [2, 3],
    align: 'right',
    above: false,
  },
}

function boundLine(name: string, bound: Bound, slots: Slot[], ink: Ink, unit: RateUnit): SeriesOption {
  return {
    type: 'custom',
    name,
    z: 4,
    clip: true,
    silent: true,
    data: slots.map((s, i) => [i, Number.isFinite(bound.of(s)) ? bound.of(s) / unit.bytes : 0]),
    renderItem: (params: CustomSeriesRenderItemParams, api: CustomSeriesRenderItemAPI) => {
      const s = slots[params.dataIndex]!
      if (!Number.isFinite(bound.of(s))) return null
      const [x, y] = api.coord([params.dataIndex, bound.of(s) / unit.bytes]) as [number, number]
      const half = Math.min(60, (api.size!([1, 0]) as number[])[0]! * 0.46)
      const share = bound.share(s)
      return {
        type: 'group',
        children: [
          line(x - half, y, x + half, y, ink.text, 2, bound.dash),
          {
            type: 'text',
            style: {
              text: share === undefined ? bound.label : `${bound.label} (${percent(share, 1)})`,
              x: px(bound.align === 'left' ? x - half : x + half),
              y: px(bound.above ? y - 3 : y + 3),
              textAlign: bound.align,
              textVerticalAlign: bound.above ? 'bottom' : 'top',
              fill: ink.text,
              fontSize: 11,
              fontFamily: ink.font,
            },
          },
        ],
      }
    },
  }
}

/** Narrower, the longest word below a slot would touch the next one's. */
function slotPixels(slots: Slot[]): number {
  const longest = slots
    .flatMap((s) => [...s.label.split(/(?<=[\s\-/])/).map((w) => w.trim()), countText(s)])
    .reduce((n, w) => Math.max(n, w.length), 0)
  return Math.max(leastSlot, Math.min(16, longest) * characterPixels + 4)
}

/** How wide a figure of these slots must at least be, to be read. */
export function boxesWidth(slots: Slot[]): number {
  return marginLeft + marginRight + slots.length * slotPixels(slots)
}

export const cross = 'path://M2,0 L5,3 L8,0 L10,2 L7,5 L10,8 L8,10 L5,7 L2,10 L0,8 L3,5 L0,2 Z'

function countText(s: Slot): string {
  if (s.missing) return trialStates['not-run'].word
  return `n ${ofAll(s.valid, s.attempted)}`
}

function slotHint(s: Slot, shown: { unit: RateUnit; ideal: boolean; coded: boolean }): string {
  const k = (x: number) => rateIn(shown.unit, x)
  const lines = [
    `<b>${escape([s.label, s.mark].filter(Boolean).join(' '))}</b>${s.group ? ` · ${escape(s.group)}` : ''}`,
  ]
  if (s.missing) lines.push(`${trialStates['not-run'].word}: ${escape(s.missing)}`)
  else if (!s.valid) lines.push(`no valid trial of ${s.attempted}`)
  else {
    lines.push(
      `mean ${k(s.average)} ${shown.unit.name}, SD ${k(s.sd)}`,
      `from ${k(s.min)} to ${k(s.max)}, median ${k(s.median)}`,
      `${s.valid} valid of ${s.attempted}`,
    )
    const rate = (on: boolean, x: number) => (on && Number.isFinite(x) ? ` (${k(x)} ${shown.unit.name})` : '')
    if (s.idealShare !== undefined) lines.push(`${percent(s.idealShare, 1)} of Ideal${rate(shown.ideal, s.ideal)}`)
    if (s.codedShare !== undefined)
      lines.push(`${percent(s.codedShare, 1)} of the coded bound${rate(shown.coded, s.coded)}`)
  }
  if (s.published)
    lines.push(
      `published: mean ${k(s.published.average)}, SD ${k(s.published.sd)}, ${k(s.published.min)}–${k(s.published.max)} (${escape(s.published.source)})`,
    )
  return lines.join('<br>')
}

export function dotHint(d: Dot, label: string): string {
  const lines = [`<b>${escape(label)}</b>`, `iteration ${d.iteration}, trial ${d.trial}, attempt ${d.attempt}`]
  if (d.value > 0) lines.push(`${rate(d.value)} in ${seconds(d.elapsed)}`)
  if (!d.counts)
    lines.push(
      `${pointState(d.verdict).word}${d.reason ? `: ${escape(d.reason)}` : d.verdict === 1 ? ', a later attempt counts' : ''}`,
    )
  return lines.join('<br>')
}

type Shape = NonNullable<CustomSeriesRenderItemReturn>
const line = (
  x1: number,
  y1: number,
  x2: number,
  y2: number,
  stroke: string,
  lineWidth: number,
  lineDash?: number[],
): Shape => ({
  type: 'line',
  shape: { x1: px(x1), y1: px(y1), x2: px(x2), y2: px(y2) },
  style: { stroke, lineWidth, lineDash },
})

function box(
  i: number,
  s: Slot,
  ink: Ink,
  look: Look,
  api: CustomSeriesRenderItemAPI,
  floor: number,
  crowded: boolean,
  unit: RateUnit,
): Shape {
  const at = (x: number) => api.coord([i, Math.max(floor, x / unit.bytes)])
  const slot = (api.size!([1, 0]) as number[])[0]!
  const half = Math.min(26, slot * 0.3)
  const color = ink.tone(look.color)
  const stroke = crowded ? ink.text : color
  const [x, top] = at(s.max) as [number, number]
  const low = at(s.min)[1]!
  const mean = at(s.average)[1]!
  const upper = at(s.average + s.sd)[1]!
  const lower = at(s.average - s.sd)[1]!
  return {
    type: 'group',
    children: [
      line(x, top, x, low, stroke, 2),
      line(x - 6, top, x + 6, top, stroke, 2),
      line(x - 6, low, x + 6, low, stroke, 2),
      {
        type: 'rect',
        shape: { x: px(x - half), y: px(upper), width: px(2 * half), height: px(Math.max(1, lower - upper)) },
        style: { fill: crowded ? 'transparent' : ink.surface, stroke, lineWidth: 1.5 },
      },
      {
        type: 'rect',
        shape: { x: px(x - half), y: px(upper), width: px(2 * half), height: px(Math.max(1, lower - upper)) },
        style: { fill: color, opacity: 0.16 },
      },
      line(x - half, mean, x + half, mean, stroke, 3),
    ],
  }
}

function publishedMark(
  i: number,
  s: Slot,
  ink: Ink,
  api: CustomSeriesRenderItemAPI,
  floor: number,
  unit: RateUnit,
): Shape {
  const p = s.published!
  const slot = (api.size!([1, 0]) as number[])[0]!
  const at = (x: number) => api.coord([i, Math.max(floor, x / unit.bytes)])
  // Beside the box, and never in the next slot.
  const x = at(p.average)[0]! + Math.min(slot * 0.42, 40)
  const y = at(p.average)[1]!
  const [top, low, upper, lower] = [p.max, p.min, p.average + p.sd, p.average - p.sd].map((v) => at(v)[1]!) as [
    number,
    number,
    number,
    number,
  ]
  return {
    type: 'group',
    children: [
      line(x, top, x, low, ink.muted, 1.5, [3, 2]),
      {
        type: 'rect',
        shape: { x: px(x - 5), y: px(upper), width: 10, height: px(Math.max(1, lower - upper)) },
        style: { fill: ink.surface, stroke: ink.muted, lineWidth: 1.5, lineDash: [3, 2] },
      },
      {
        type: 'polygon',
        shape: {
          points: [
            [x, y - 5],
            [x + 5, y],
            [x, y + 5],
            [x - 5, y],
          ],
        },
        style: { fill: ink.surface, stroke: ink.text, lineWidth: 1.5 },
      },
    ],
  }
}

function groupsOf(slots: Slot[]): { name: string; start: number; end: number }[] {
  const out: { name: string; start: number; end: number }[] = []
  slots.forEach((s, i) => {
    const last = out[out.length - 1]
    if (last && last.name === s.group) last.end = i
    else out.push({ name: s.group, start: i, end: i })
  })
  return out
}

export function boxesOption(input: BoxesInput, ink: Ink, size: Size): EChartsOption {
  const { slots, unit } = input
  const slotWidth = Math.max(leastSlot, (size.width - marginLeft - marginRight) / Math.max(1, slots.length))
  const groups = groupsOf(slots)
  const grouped = groups.some((g) => g.name)
  const most = Math.max(6, Math.floor(slotWidth / characterPixels))
  const names = slots.map((s) => wrap([s.label, s.mark].filter(Boolean).join(' '), most, 3))
  const nameLines = Math.max(1, ...names.map((n) => n.length))
  // Hundreds of points would hide the box: they get more room, and the box stands over them.
  const crowded = Math.max(0, ...slots.map((s) => s.dots.length)) > manyDots
  const share = crowded ? Math.min(0.7, 150 / slotWidth) : Math.min(0.5, 52 / slotWidth) // of a slot, that points are spread over
  const spread = (d: Dot) => (input.iterations > 1 ? ((d.iteration - 1) / (input.iterations - 1) - 0.5) * share : 0)
  // Later attempts of a trial stand beside the first.
  const beside = (d: Dot) => ((d.attempt - 1) * 7) / slotWidth
  const dotSize = Math.max(2.5, Math.min(7, 9 - Math.log2(1 + Math.max(1, ...slots.map((s) => s.dots.length)))))

  const series: SeriesOption[] = [
    {
      type: 'custom',
      name: 'boxes',
      z: crowded ? 5 : 2,
      clip: true,
      tooltip: { formatter: (p) => slotHint(slots[(p as { value: number[] }).value[0]!]!, input) },
      data: slots.map((s, i) => [i, s.average / unit.bytes]),
      renderItem: (params: CustomSeriesRenderItemParams, api: CustomSeriesRenderItemAPI) => {
        const s = slots[params.dataIndex]!
        return s.valid ? box(params.dataIndex, s, ink, lookOf(input.looks, s.treatment), api, 0, crowded, unit) : null
      },
    },
  ]
  const treatments = [...new Set(slots.map((s) => s.treatment))]
  for (const t of treatments) {
    const look = lookOf(input.looks, t)
    const label = slots.find((s) => s.treatment === t)!.label
    const style = {
      color: ink.tone(look.color),
      opacity: crowded ? 0.4 : 0.75,
      borderColor: ink.surface,
      borderWidth: dotSize > 4 ? 0.5 : 0,
    }
    // A point carries its place among the slots and in the slot's list: no object each.
    const points = (of: (s: Slot) => Dot[], y: (d: Dot) => number) =>
      slots.flatMap((s, i) =>
        s.treatment === t ? of(s).map((d, k) => [i + spread(d) + (y(d) ? 0 : beside(d)), y(d), i, k]) : [],
      )
    const dots = points(
      (s) => s.dots,
      (d) => d.value / unit.bytes,
    )
    const asOne = dots.length >= manyTogether
    series.push(
      {
        // Thousands of points are drawn as one path, which a symbol of a path would be missing in.
        type: 'scatter',
        name: t,
        z: 3,
        large: true,
        largeThreshold: manyTogether,
        symbol: asOne ? 'circle' : look.marker,
        symbolSize: asOne ? dotSize : dotSize * look.size,
        itemStyle: style,
        data: dots,
        dimensions: ['slot', unit.name, 'i', 'k'],
        tooltip: {
          formatter: (p) => {
            const v = (p as { value: number[] }).value
            return dotHint(slots[v[2]!]!.dots[v[3]!]!, label)
          },
        },
      },
      {
        type: 'scatter',
        name: `${t} failed`,
        z: 3,
        symbol: cross,
        symbolSize: 8,
        symbolOffset: [0, 10],
        clip: false,
        itemStyle: { color: ink.bad, opacity: 0.85 },
        data: points(
          (s) => s.failures,
          () => 0,
        ),
        dimensions: ['slot', unit.name, 'i', 'k'],
        tooltip: {
          formatter: (p) => {
            const v = (p as { value: number[] }).value
            return dotHint(slots[v[2]!]!.failures[v[3]!]!, label)
          },
        },
      },
    )
  }
  if (input.published && slots.some((s) => s.published)) {
    series.push({
      type: 'custom',
      name: 'published',
      z: 4,
      clip: true,
      data: slots.map((s, i) => [i, (s.published?.average ?? 0) / unit.bytes]),
      tooltip: { formatter: (p) => slotHint(slots[(p as { value: number[] }).value[0]!]!, input) },
      renderItem: (params, api) =>
        slots[params.dataIndex]!.published
          ? publishedMark(params.dataIndex, slots[params.dataIndex]!, ink, api, 0, unit)
          : null,
    })
  }
  for (const [name, bound] of Object.entries(bounds)) {
    if (input[bound.shown] && slots.some((s) => Number.isFinite(bound.of(s))))
      series.push(boundLine(name, bound, slots, ink, unit))
  }
  if (grouped || groups.length > 1) {
    series.push({
      type: 'custom',
      name: 'groups',
      z: 1,
      clip: false,
      silent: true,
      data: groups.map((g) => [(g.start + g.end) / 2, 0]),
      renderItem: (params, api) => {
        const g = groups[params.dataIndex]!
        const area = params.coordSys as unknown as { x: number; y: number; width: number; height: number }
        const left = api.coord([g.start - 0.5, 0])[0]!
        const right = api.coord([g.end + 0.5, 0])[0]!
        const text = wrap(g.name, Math.max(6, Math.floor((right - left) / 6.6)), 2).join('\n')
        return {
          type: 'group',
          children: [
            line(left, area.y - 34, left, area.y + area.height, g.start ? ink.faint : 'transparent', 1),
            {
              type: 'text',
              style: {
                text,
                x: px((left + right) / 2),
                y: px(area.y - 4),
                textAlign: 'center',
                textVerticalAlign: 'bottom',
                fill: ink.text,
                fontSize: 12,
                fontWeight: 'bold',
                fontFamily: ink.font,
              },
            },
          ],
        }
      },
    })
  }
  return {
    ...base(ink),
    grid: {
      left: marginLeft,
      right: marginRight,
      top: grouped ? 56 : 26,
      bottom: 34 + 15 * nameLines + 16,
      containLabel: false,
      outerBoundsMode: 'none',
    },
    tooltip: { trigger: 'item', ...hint(ink) },
    xAxis: {
      type: 'value',
      min: -0.5,
      max: slots.length - 0.5,
      axisLine: { onZero: false, lineStyle: { color: ink.line } },
      splitLine: { show: false },
      axisTick: { show: false },
      axisLabel: {
        customValues: slots.map((_, i) => i),
        margin: 24,
        hideOverlap: false,
        interval: 0,
        fontFamily: ink.font,
        formatter: (v: number) => {
          const i = Math.round(v)
          const s = slots[i]
          return s ? [...names[i]!, countText(s)].join('\n') : ''
        },
        // Plain text: styles of parts would take the braces of a label for their own.
        color: ink.text,
        fontSize: 12,
        lineHeight: 15,
        width: slotWidth - 2,
        overflow: 'break',
      },
    } as EChartsOption['xAxis'],
    yAxis: { ...valueAxis(ink, unit.name), min: 0, ...(input.top > 0 && { max: input.top }) } as EChartsOption['yAxis'],
    series,
  }
}

/** The figure in a sentence, for whoever does not see it. */
export function boxesWords(title: string, slots: Slot[]): string {
  const of = slots.slice(0, 12).map((s) => {
    const name = [s.label, s.mark, s.group].filter(Boolean).join(' ')
    return s.missing
      ? `${name}: ${trialStates['not-run'].word}`
      : s.valid
        ? `${name}: mean ${rate(s.average)}, n ${s.valid} of ${s.attempted}`
        : `${name}: no valid trial of ${s.attempted}`
  })
  return `Throughput, ${title}. ${of.join('; ')}${slots.length > 12 ? `; and ${slots.length - 12} more` : ''}.`
}
