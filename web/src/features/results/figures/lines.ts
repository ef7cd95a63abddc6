// Figures of lines: distributions, throughput over iterations, curves over a
// swept parameter, and time–sequence diagrams.
import type { CustomSeriesRenderItemReturn, EChartsOption, SeriesOption } from 'echarts'
import type { Look } from '@/lib/palette'
import { cross } from './boxes'
import type { Ink } from './ink'
import { base, bottomAxis, escape, hint, px, valueAxis, type Size } from './parts'

export interface Line {
  name: string
  look: Look
  /** x and y; a NaN is a gap. What stands behind is the point's own. */
  points: number[][]
  step?: 'end'
  dash?: 'solid' | 'dashed' | 'dotted'
  /** Half of the points are enough to tell lines apart; 0 draws none. */
  markEvery?: number
  hollow?: boolean
  /** Points alone, small and faint. */
  cloud?: boolean
  width?: number
  /** By place in points: an interval around y. */
  low?: number[]
  high?: number[]
  /** By place in points: short bars at what else could have been there; in two parts where broken. */
  bars?: { values: number[]; broken: boolean }[]
  /** Places on the x axis of what failed. */
  failed?: number[][]
}

export interface LinesInput {
  lines: Line[]
  x: {
    name: string
    min?: number
    max?: number
    log?: boolean
    ticks?: { at: number; label: string }[]
    whole?: boolean
  }
  y: { name: string; min?: number; max?: number; percent?: boolean }
  /** HTML of a point's hint; what comes from plans must be escaped. */
  hintOf(line: Line, point: number[]): string
  zoom?: boolean
}

export function linesOption(input: LinesInput, ink: Ink, size: Size): EChartsOption {
  const series: SeriesOption[] = []
  const some = input.lines.some((l) => l.failed?.length)
  for (const l of input.lines) {
    const color = ink.tone(l.look.color)
    const every = l.markEvery ?? (l.points.length > 40 ? Math.ceil(l.points.length / 12) : 1)
    const dash = l.dash ?? l.look.dash
    series.push({
      type: 'line',
      name: l.name,
      step: l.step ?? false,
      data: l.points,
      connectNulls: false,
      clip: true,
      z: 3,
      lineStyle: { color, width: l.cloud ? 0 : (l.width ?? 2), type: dash },
      itemStyle: {
        color: l.hollow ? ink.surface : color,
        borderColor: color,
        // A broad border would fill the corners of crosses and stars.
        borderWidth: l.cloud ? 0 : l.hollow ? 1.5 : 0.5,
        opacity: l.cloud ? 0.4 : 1,
      },
      symbol: l.look.marker,
      showSymbol: every > 0,
      showAllSymbol: true,
      symbolSize: l.cloud
        ? 3 * l.look.size
        : (_: unknown, p: { dataIndex: number }) =>
            every > 0 && p.dataIndex % every === 0 ? (l.hollow ? 7 : 8) * l.look.size : 0,
      emphasis: { disabled: true },
      tooltip: { formatter: (p: unknown) => input.hintOf(l, (p as { value: number[] }).value) },
    } as SeriesOption)
    if (l.low?.length && l.high?.length) {
      series.push({
        type: 'custom',
        name: `${l.name} interval`,
        silent: true,
        z: 2,
        clip: true,
        data: l.points.map((p, i) => [p[0]!, l.low![i]!, l.high![i]!]).filter((p) => p.every(Number.isFinite)),
        renderItem: (_: unknown, api): CustomSeriesRenderItemReturn => {
          const [x, low] = api.coord([api.value(0), api.value(1)]) as [number, number]
          const high = api.coord([api.value(0), api.value(2)])[1]!
          const bar = (x1: number, y1: number, x2: number, y2: number) => ({
            type: 'line' as const,
            shape: { x1: px(x1), y1: px(y1), x2: px(x2), y2: px(y2) },
            style: { stroke: color, lineWidth: 1.2 },
          })
          return {
            type: 'group',
            children: [bar(x, low, x, high), bar(x - 4, low, x + 4, low), bar(x - 4, high, x + 4, high)],
          }
        },
      })
    }
    for (const [k, bars] of (l.bars ?? []).entries()) {
      const data = l.points.map((p, i) => [p[0]!, bars.values[i]!]).filter((p) => p.every(Number.isFinite))
      if (!data.length) continue
      series.push({
        type: 'custom',
        name: `${l.name} bars ${k}`,
        silent: true,
        z: 2,
        clip: true,
        data,
        renderItem: (_: unknown, api): CustomSeriesRenderItemReturn => {
          const [x, y] = api.coord([api.value(0), api.value(1)]) as [number, number]
          const part = (from: number, to: number) => ({
            type: 'line' as const,
            shape: { x1: px(x + from), y1: px(y), x2: px(x + to), y2: px(y) },
            style: { stroke: color, lineWidth: 2 },
          })
          return { type: 'group', children: bars.broken ? [part(-8, -2), part(2, 8)] : [part(-8, 8)] }
        },
      })
    }
    if (l.failed?.length) {
      series.push({
        type: 'scatter',
        name: `${l.name} failed`,
        z: 4,
        symbol: cross,
        symbolSize: 8,
        symbolOffset: [0, 10],
        clip: false,
        itemStyle: { color },
        data: l.failed,
        tooltip: { formatter: (p: unknown) => input.hintOf(l, (p as { value: number[] }).value) },
      } as SeriesOption)
    }
  }
  const ticks = input.x.ticks
  const roomy = !ticks || ticks.length * 44 < size.width
  return {
    ...base(ink),
    grid: {
      left: 58,
      right: 22,
      top: 26,
      bottom: (input.x.name ? 50 : 30) + (some ? 14 : 0),
      outerBoundsMode: 'none',
    } as EChartsOption['grid'],
    tooltip: { trigger: 'item', ...hint(ink) },
    xAxis: {
      ...bottomAxis(ink, input.x.name),
      type: input.x.log ? 'log' : 'value',
      min: input.x.min,
      max: input.x.max,
      ...(input.x.whole && { minInterval: 1 }),
      nameGap: some ? 40 : 28,
      axisLabel: {
        color: ink.muted,
        fontFamily: ink.font,
        hideOverlap: true,
        margin: some ? 20 : 8,
        ...(ticks && {
          customValues: ticks.map((t) => t.at),
          formatter: (v: number) =>
            ticks.find((t) => Math.abs(t.at - v) <= 1e-9 * Math.max(1, Math.abs(v)))?.label ?? '',
          ...(roomy ? {} : { rotate: 45 }),
        }),
      },
      ...(ticks && { axisTick: { customValues: ticks.map((t) => t.at) } }),
    } as EChartsOption['xAxis'],
    yAxis: {
      ...valueAxis(ink, input.y.name),
      min: input.y.min,
      max: input.y.max,
      ...(input.y.percent && {
        axisLabel: { color: ink.muted, fontFamily: ink.font, formatter: (v: number) => `${Math.round(v * 100)} %` },
      }),
    } as EChartsOption['yAxis'],
    ...(input.zoom && {
      dataZoom: [
        { type: 'inside', xAxisIndex: 0, zoomOnMouseWheel: 'ctrl', moveOnMouseWheel: false, filterMode: 'none' },
      ],
    }),
    series,
  }
}

/** Numbers that spread over more than a factor of fifty are read on a logarithmic axis. */
export function wantsLog(positions: number[]): boolean {
  return positions.length > 2 && positions.every((p) => p > 0) && Math.max(...positions) / Math.min(...positions) >= 50
}

/** Where the points of a swept parameter lie: by their values, or at equal distances where values have none or are too close to be labelled. */
export function placesOf(values: readonly string[], positions: readonly number[]) {
  const even = values.map((_, i) => i + 1)
  if (positions.length !== values.length) return { at: even, log: false, even: true }
  if (wantsLog([...positions])) return { at: [...positions], log: true, even: false }
  const sorted = [...positions].sort((a, b) => a - b)
  const span = sorted.at(-1)! - sorted[0]!
  const close = sorted.some((x, i) => i > 0 && x - sorted[i - 1]! < span * 0.05)
  return close ? { at: even, log: false, even: true } : { at: [...positions], log: false, even: false }
}

export function pointHint(name: string, rows: [string, string][]): string {
  return [`<b>${escape(name)}</b>`, ...rows.map(([k, v]) => `${escape(k)} ${escape(v)}`)].join('<br>')
}
