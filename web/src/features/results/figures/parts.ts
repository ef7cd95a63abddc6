// What all figures are put together from: axes, hints, line breaks.
import type { EChartsOption } from 'echarts'
import type { Look } from '@/lib/palette'
import type { Ink } from './ink'

export interface Size {
  width: number
  height: number
}

/** One chart of a figure; built anew for the screen, for another theme and for paper. */
export interface FigureSpec {
  key: string
  title: string
  /** In words, for whoever does not see it. */
  label: string
  height: number
  minWidth?: number
  /** Below the title: what is left out, what is partial. */
  note?: string
  build(ink: Ink, size: Size): EChartsOption
}

/** One entry of a figure's legend. */
export interface LegendItem {
  name: string
  label: string
  look: Look
}

/** How many points of lines and clouds a chart has: one without any must say why. */
export function pointsOf(option: EChartsOption): number {
  return [option.series ?? []]
    .flat()
    .filter((s) => s.type === 'line' || s.type === 'scatter')
    .flatMap((s) => (s.data ?? []) as unknown[])
    .filter((d) => Array.isArray(d) && Number.isFinite(d[1])).length
}

export function escape(s: string): string {
  return s.replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`)
}

/** Lines of at most `most` characters, broken at spaces and hyphens; the last of `lines` is cut with an ellipsis. */
export function wrap(s: string, most: number, lines = 3): string[] {
  const out: string[] = []
  for (const word of s.split(/(?<=[\s\-/·])/)) {
    const last = out.length - 1
    if (last >= 0 && (out[last]! + word).trimEnd().length <= most) out[last] += word
    else {
      let rest = word
      while (rest.trimEnd().length > most) {
        out.push(rest.slice(0, most))
        rest = rest.slice(most)
      }
      out.push(rest)
    }
  }
  const cut = out.map((l) => l.trim()).filter(Boolean)
  if (cut.length <= lines) return cut
  return [...cut.slice(0, lines - 1), `${cut[lines - 1]!.slice(0, Math.max(1, most - 1))}…`]
}

export const px = (n: number) => Math.round(n * 10) / 10

export function valueAxis(ink: Ink, name: string): Record<string, unknown> {
  return {
    type: 'value',
    name,
    nameLocation: 'end',
    nameGap: 12,
    nameTextStyle: { color: ink.muted, align: 'left', padding: [0, 0, 0, -44], fontFamily: ink.font },
    axisLabel: { color: ink.muted, fontFamily: ink.font, hideOverlap: true },
    axisLine: { show: true, onZero: false, lineStyle: { color: ink.line } },
    splitLine: { lineStyle: { color: ink.faint } },
  }
}

export function bottomAxis(ink: Ink, name: string): Record<string, unknown> {
  return {
    type: 'value',
    name,
    nameLocation: 'middle',
    nameGap: 28,
    nameTextStyle: { color: ink.muted, fontFamily: ink.font },
    axisLabel: { color: ink.muted, fontFamily: ink.font, hideOverlap: true },
    axisLine: { show: true, onZero: false, lineStyle: { color: ink.line } },
    splitLine: { show: false },
  }
}

export function hint(ink: Ink): Record<string, unknown> {
  return {
    confine: true,
    backgroundColor: ink.surface,
    borderColor: ink.line,
    transitionDuration: 0,
    textStyle: { color: ink.text, fontFamily: ink.font, fontSize: 13 },
    extraCssText: 'max-width: 380px; white-space: normal; z-index: 20',
  }
}

export function base(ink: Ink): EChartsOption {
  return { animation: false, textStyle: { fontFamily: ink.font, color: ink.text }, backgroundColor: 'transparent' }
}
