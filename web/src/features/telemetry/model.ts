// What radios and the laptops beside them tell of themselves, for people.
import type { TelemetrySeries } from '@/gen/linktrial/v1/result_pb'
import type { TelemetryReading, TelemetryState } from '@/gen/linktrial/v1/telemetry_pb'
import { seconds, unitOf } from '@/lib/format'
import type { DeepLine, DeepPanel } from '@/features/results/panels'

const positionNames = ['latitude', 'longitude']

export interface NodePosition {
  node: string
  latitude: number
  longitude: number
}

/** Degrees with the hemisphere: 39.01234° N, 77.1° W; five decimals are a metre. */
export function positionText(latitude: number, longitude: number): string {
  const part = (x: number, sides: [string, string]) =>
    `${Number(Math.abs(x).toFixed(5))}° ${x < 0 ? sides[1] : sides[0]}`
  return `${part(latitude, ['N', 'S'])}, ${part(longitude, ['E', 'W'])}`
}

/** A value with its unit, short. Rates and counts stay readable. */
export function readingText(r: Pick<TelemetryReading, 'value' | 'unit'>): string {
  const n = Number.isInteger(r.value) ? r.value.toLocaleString('en') : String(Number(r.value.toPrecision(4)))
  return r.unit ? `${n}${r.unit === '°' ? '' : ' '}${r.unit}` : n
}

/** How old a reading is, in whole seconds. */
export const ageText = (age: number): string => (age < 1 ? '0 s' : seconds(Math.floor(age)).replace(/\.0+ s$/, ' s'))

/** What one source told last: its values, with a position as one of them. */
export function stateLines(s: TelemetryState): { name: string; text: string }[] {
  const of = (name: string) => s.values.find((v) => v.name === name)?.value
  const latitude = of('latitude')
  const longitude = of('longitude')
  const out = s.values
    .filter((v) => latitude === undefined || !positionNames.includes(v.name))
    .map((v) => ({ name: v.name.replace(/_/g, ' '), text: readingText(v) }))
  return latitude === undefined || longitude === undefined
    ? out
    : [{ name: 'position', text: positionText(latitude, longitude) }, ...out]
}

/** Where the nodes stood at the trial's start, or first after it. */
export function positionsOf(telemetry: TelemetrySeries[]): NodePosition[] {
  const first = (node: string, source: string, name: string) =>
    telemetry.find((t) => t.node === node && t.source === source && t.name === name)?.value[0]
  return telemetry
    .filter((t) => t.name === 'latitude')
    .flatMap((t) => {
      const longitude = first(t.node, t.source, 'longitude')
      return longitude === undefined || t.value[0] === undefined
        ? []
        : [{ node: t.node, latitude: t.value[0], longitude }]
    })
}

/** One panel for each metric, a line for each node: a value holds until the next. */
export function telemetryPanelsOf(telemetry: TelemetrySeries[], end: number): DeepPanel[] {
  const panels = new Map<string, DeepPanel & { sources: Set<string> }>()
  const shown = telemetry.filter((t) => t.at.length && !positionNames.includes(t.name))
  for (const t of shown) {
    const named = unitOf(t.name)
    const unit = t.unit || named.unit
    const title = t.unit ? t.name.replace(/_/g, ' ') : named.title
    const key = `radio-${t.name}`
    const p = panels.get(key) ?? { key, title: `Radio: ${title}`, unit, lines: [], sources: new Set<string>() }
    p.sources.add(t.source)
    p.lines.push({ name: t.node, points: held(t, end), step: true })
    panels.set(key, p)
  }
  // Two sources of one node may know the same metric.
  for (const [key, p] of panels) {
    if (p.sources.size > 1)
      p.lines.forEach((l, i) => (l.name += ` (${shown.filter((t) => `radio-${t.name}` === key)[i]!.source})`))
  }
  return [...panels.values()].map(({ key, title, unit, lines }): DeepPanel => ({ key, title, unit, lines }))
}

/** The points from the trial's start to its end: what was read before holds at the start. */
function held(t: TelemetrySeries, end: number): DeepLine['points'] {
  const points: [number, number][] = []
  t.at.forEach((at, i) => {
    if (at > end) return
    if (at <= 0) points.length = 0
    points.push([Math.max(0, at), t.value[i]!])
  })
  const last = points.at(-1)
  if (last && last[0] < end) points.push([end, last[1]])
  return points
}
