// All that is known of one attempt on one time axis: panels one below the
// other, with one cursor and one zoom.
import type { EChartsOption, SeriesOption } from 'echarts'
import { valueAt, type DeepPanel } from '@/features/results/panels'
import { decimal } from '@/lib/number'
import { looks } from '@/lib/palette'
import type { Ink } from './ink'
import { base, escape, hint, type Size } from './parts'

const panelPixels = 96
/** Left and right of the panels. */
export const deepMargins = { left: 58, right: 18 }
const titlePixels = 26
const linePixels = 17
const gapPixels = 26
const topPixels = 6
/** Of the slider below the panels. */
export const sliderPixels = 58

/** The lines of a panel's heading: its title and what each of its lines is of, on a phone one below the other. */
export function headingOf(p: DeepPanel, width: number): { title: string; lines: DeepPanel['lines'][] } {
  const title = `${p.title}${p.unit ? `, ${p.unit}` : ''}`
  const lines: DeepPanel['lines'][] = [[]]
  // Widths of text are estimates: characters of the title, which is bold, and of the others.
  let x = title.length * 7.6
  for (const l of p.lines) {
    const wide = 34 + l.name.length * 6.4
    if (x + wide > width - 20 && x > 0) {
      lines.push([])
      x = 0
    }
    lines.at(-1)!.push(l)
    x += wide
  }
  return { title, lines }
}
const headingPixels = (p: DeepPanel, width: number) => titlePixels + (headingOf(p, width).lines.length - 1) * linePixels

export function deepHeight(panels: DeepPanel[], width: number): number {
  return panels.reduce((y, p) => y + headingPixels(p, width) + panelPixels + gapPixels, topPixels) + sliderPixels
}

export interface DeepInput {
  panels: DeepPanel[]
  end: number
  from: number
  to: number
  /** Not on paper: the slider below. */
  slider: boolean
}

/** Within one attempt lines are told apart by what they are of, not by treatment. */
export function lineLooks(panel: DeepPanel) {
  return looks(panel.lines.map((l) => l.name))
}

function cursorHint(panels: DeepPanel[], at: number, ink: Ink): string {
  const rows = panels.map((p) => {
    const look = lineLooks(p)
    const values = p.lines.map(
      (l) =>
        `<span style="color:${ink.tone(look.get(l.name)!.color)}">${look.get(l.name)!.glyph}</span> ${p.lines.length > 1 ? `${escape(l.name)} ` : ''}<b>${decimal(valueAt(l, at))}</b>`,
    )
    return `<tr><td style="padding-right:8px;vertical-align:top">${escape(p.title)}${p.unit ? `, ${escape(p.unit)}` : ''}</td><td>${values.join('<br>')}</td></tr>`
  })
  return `<b>${at.toFixed(3)} s</b><table style="border-spacing:0;font-size:12px">${rows.join('')}</table>`
}

export function deepOption(input: DeepInput, ink: Ink, size: Size): EChartsOption {
  const { panels } = input
  const series: SeriesOption[] = []
  const headings = panels.map((p) => headingOf(p, size.width))
  const tops: number[] = []
  panels.reduce((y, p) => {
    tops.push(y)
    return y + headingPixels(p, size.width) + panelPixels + gapPixels
  }, topPixels)
  panels.forEach((p, i) => {
    const look = lineLooks(p)
    for (const l of p.lines) {
      const k = look.get(l.name)!
      const color = ink.tone(k.color)
      series.push({
        type: 'line',
        name: l.name,
        xAxisIndex: i,
        yAxisIndex: i,
        data: l.points,
        step: l.step ? 'end' : false,
        connectNulls: false,
        clip: true,
        lineStyle: {
          color,
          width: 1.8,
          type: p.lines.indexOf(l) % 3 === 1 ? 'dashed' : p.lines.indexOf(l) % 3 === 2 ? 'dotted' : 'solid',
        },
        itemStyle: { color },
        showSymbol: l.points.length < 60,
        symbol: k.marker,
        symbolSize: 5 * k.size,
        emphasis: { disabled: true },
        sampling: undefined,
      } as SeriesOption)
    }
  })
  const rich: Record<string, object> = {
    t: { fontWeight: 'bold', fontSize: 13, color: ink.text, fontFamily: ink.font },
  }
  const title = panels.map((p, i) => {
    const look = lineLooks(p)
    const { title, lines } = headings[i]!
    const item = (l: DeepPanel['lines'][number]) => {
      const j = p.lines.indexOf(l)
      rich[`c${i}x${j}`] = { color: ink.tone(look.get(l.name)!.color), fontSize: 13 }
      return `{c${i}x${j}|${look.get(l.name)!.glyph}} {n|${l.name.replace(/[{}|]/g, ' ')}}`
    }
    return {
      text: lines.map((row, k) => [...(k ? [] : [`{t|${title}}`]), ...row.map(item)].join('   ')).join('\n'),
      left: 4,
      top: tops[i]!,
      padding: 0,
      textStyle: {
        rich: { ...rich, n: { color: ink.text, fontSize: 12, fontFamily: ink.font } },
        lineHeight: linePixels,
        width: size.width - 8,
        overflow: 'truncate' as const,
      },
    }
  })
  const all = panels.map((_, i) => i)
  return {
    ...base(ink),
    title,
    grid: panels.map((_, i) => ({
      ...deepMargins,
      top: tops[i]! + headingPixels(panels[i]!, size.width),
      height: panelPixels,
      outerBoundsMode: 'none',
    })) as EChartsOption['grid'],
    axisPointer: { link: [{ xAxisIndex: 'all' }], lineStyle: { color: ink.muted } },
    tooltip: {
      trigger: 'axis',
      ...hint(ink),
      extraCssText: 'max-width: 460px; z-index: 20',
      axisPointer: { type: 'line', lineStyle: { color: ink.muted } },
      formatter: (ps: unknown) => cursorHint(panels, Number((Array.isArray(ps) ? ps[0] : ps)?.axisValue ?? 0), ink),
      position: (
        point: [number, number],
        _p: unknown,
        _d: unknown,
        _r: unknown,
        box: { contentSize: [number, number]; viewSize: [number, number] },
      ) => [
        point[0] > box.viewSize[0] / 2 ? point[0] - box.contentSize[0] - 24 : point[0] + 24,
        Math.max(0, Math.min(point[1] - 30, box.viewSize[1] - box.contentSize[1])),
      ],
    } as EChartsOption['tooltip'],
    xAxis: all.map((i) => ({
      type: 'value',
      gridIndex: i,
      min: 0,
      max: input.end || 1,
      name: i === all.length - 1 && !input.slider ? 'seconds since the trial’s start' : '',
      nameLocation: 'middle',
      nameGap: 26,
      nameTextStyle: { color: ink.muted },
      axisLabel: {
        color: ink.muted,
        fontFamily: ink.font,
        hideOverlap: true,
        showMaxLabel: false,
        showMinLabel: input.from <= 0,
        formatter: (v: number) => `${Number(v.toFixed(4))} s`,
      },
      axisLine: { onZero: false, lineStyle: { color: ink.line } },
      splitLine: { show: true, lineStyle: { color: ink.faint, opacity: 0.6 } },
      axisPointer: {
        label: {
          show: i === 0,
          formatter: ({ value }: { value: unknown }) => `${Number(value).toFixed(3)} s`,
          backgroundColor: ink.text,
          color: ink.surface,
        },
      },
    })) as EChartsOption['xAxis'],
    yAxis: all.map((i) => ({
      type: 'value',
      gridIndex: i,
      min: (e: { min: number }) => (e.min >= 0 ? 0 : null),
      splitNumber: 3,
      ...(panels[i]!.whole && { minInterval: 1 }),
      axisLabel: { color: ink.muted, fontFamily: ink.font, hideOverlap: true, formatter: (v: number) => short(v) },
      splitLine: { lineStyle: { color: ink.faint } },
    })) as EChartsOption['yAxis'],
    dataZoom: [
      {
        type: 'inside',
        xAxisIndex: all,
        zoomOnMouseWheel: 'ctrl',
        moveOnMouseWheel: 'shift',
        moveOnMouseMove: false,
        filterMode: 'none',
        startValue: input.from,
        endValue: input.to,
      },
      ...(input.slider
        ? [
            {
              type: 'slider' as const,
              xAxisIndex: all,
              filterMode: 'none' as const,
              height: 26,
              bottom: 8,
              ...deepMargins,
              startValue: input.from,
              endValue: input.to,
              showDataShadow: false,
              labelFormatter: (v: number) => `${v.toFixed(2)} s`,
              textStyle: { color: ink.text },
              borderColor: ink.line,
              fillerColor: ink.faint,
              backgroundColor: 'transparent',
              handleStyle: { color: ink.surface, borderColor: ink.text },
              moveHandleStyle: { color: ink.line },
              handleSize: '110%',
              brushSelect: false,
            },
          ]
        : []),
    ],
    series,
  }
}

/** Axis labels of at most five characters: 12000 is 12k. */
export function short(v: number): string {
  const a = Math.abs(v)
  if (a >= 1e6) return `${Number((v / 1e6).toPrecision(3))}M`
  if (a >= 1e4) return `${Number((v / 1e3).toPrecision(3))}k`
  if (a > 0 && a < 1e-3) return v.toExponential(0)
  return String(Number(v.toPrecision(4)))
}
