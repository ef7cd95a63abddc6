// Time series of attempts as figures draw them: on the trial's clock, gaps as
// NaN, and finer data laid into the overview where one has zoomed in. Pure.
import type { ChannelSeries, FlowSeries, SeriesResponse } from '@/gen/linktrial/v1/result_pb'
import { telemetryPanelsOf } from './telemetry'
import { KB, unitOf } from '@/lib/format'

export interface SequenceLine {
  name: string
  treatment: string
  trial: number
  attempt: number
  /** Seconds since the first flow's clock of the trial started, and bytes. */
  points: number[][]
}

/** The senders' bytes over time, of every flow of an iteration. */
export function sequenceLines(flows: FlowSeries[]): SequenceLine[] {
  const senders = flows.filter((f) => f.side !== 'server')
  return senders.map((f) => {
    const siblings = senders.filter((x) => x.trial === f.trial && x.attempt === f.attempt)
    const start = f.offsetSeconds - Math.min(...siblings.map((x) => x.offsetSeconds))
    const bytes = f.ackedBytes.length ? f.ackedBytes : f.sentBytes
    const points = f.at.map((at, i) => [start + at, count(bytes[i])])
    if (points.length && points[0]![0]! > start) points.unshift([start, 0])
    return {
      name: siblings.length > 1 ? `${f.label || f.treatment}, flow ${f.flow + 1}` : f.label || f.treatment,
      treatment: f.treatment,
      trial: f.trial,
      attempt: f.attempt,
      points,
    }
  })
}

/** A count that the protocol does not know is -1. */
function count(x: number | undefined): number {
  return x === undefined || x < 0 ? Number.NaN : x
}

export interface DeepLine {
  name: string
  points: [number, number][]
  /** A value holds until the next one. */
  step: boolean
}
export interface DeepPanel {
  key: string
  title: string
  unit: string
  lines: DeepLine[]
}

type Columns = { [K in keyof FlowSeries]-?: FlowSeries[K] extends number[] ? K : never }[keyof FlowSeries]

/** A figure as large as this is a protocol's "not limited yet" (Linux: the slow start threshold at first). */
const unlimitedBytes = 1e9

interface ColumnSpec {
  column: Columns
  name: string
  scale: number
  step?: boolean
}
const flowPanels: { key: string; title: string; unit: string; columns: ColumnSpec[] }[] = [
  {
    key: 'throughput',
    title: 'Throughput',
    unit: 'KB/s',
    columns: [{ column: 'throughput', name: 'throughput', scale: 1 / KB }],
  },
  {
    key: 'bytes',
    title: 'Data',
    unit: 'KB',
    columns: [
      { column: 'sentBytes', name: 'sent', scale: 1 / KB },
      { column: 'ackedBytes', name: 'acknowledged', scale: 1 / KB },
    ],
  },
  {
    key: 'window',
    title: 'Window',
    unit: 'KB',
    columns: [
      { column: 'cwndBytes', name: 'congestion window', scale: 1 / KB },
      { column: 'ssthreshBytes', name: 'slow start threshold', scale: 1 / KB },
      { column: 'flightBytes', name: 'in flight', scale: 1 / KB },
    ],
  },
  {
    key: 'rtt',
    title: 'Round trip',
    unit: 's',
    columns: [
      { column: 'srttMs', name: 'smoothed RTT', scale: 1e-3 },
      { column: 'rttvarMs', name: 'its variation', scale: 1e-3 },
      { column: 'rtoMs', name: 'timeout (RTO)', scale: 1e-3 },
    ],
  },
  {
    key: 'events',
    title: 'Retransmissions, in all',
    unit: '',
    columns: [
      { column: 'retransmits', name: 'retransmissions', scale: 1, step: true },
      { column: 'timeouts', name: 'timeouts', scale: 1, step: true },
      { column: 'lossEvents', name: 'loss events', scale: 1, step: true },
    ],
  },
  {
    key: 'rate',
    title: 'Rate',
    unit: 'kbit/s',
    columns: [
      { column: 'pacingBps', name: 'pacing', scale: 1e-3 },
      { column: 'bandwidthBps', name: 'own estimate', scale: 1e-3 },
    ],
  },
]

const times = (f: FlowSeries) => f.at.map((at) => f.offsetSeconds + at)

function flowPanelsOf(flows: FlowSeries[]): DeepPanel[] {
  const several = new Set(flows.map((f) => f.flow)).size > 1
  const who = (f: FlowSeries, name: string) => {
    const of = several ? `flow ${f.flow + 1} ${f.label || f.treatment}` : ''
    const what = f.side === 'server' ? (name === 'sent' ? 'received' : `${name} at the receiver`) : name
    return [of, what].filter(Boolean).join(': ')
  }
  const out: DeepPanel[] = []
  for (const p of flowPanels) {
    const lines: DeepLine[] = []
    for (const f of flows) {
      const at = times(f)
      for (const c of p.columns) {
        const values = f[c.column] as number[]
        const points = values.map((v, i): [number, number] => [
          at[i]!,
          v < 0 || (c.column === 'ssthreshBytes' && v >= unlimitedBytes) ? Number.NaN : v * c.scale,
        ])
        if (points.some(([, y]) => Number.isFinite(y)))
          lines.push({ name: who(f, c.name), points, step: c.step ?? false })
      }
    }
    if (lines.length) out.push({ key: p.key, title: p.title, unit: p.unit, lines })
  }
  // What only this protocol has: a panel for each unit and each name without one.
  const more = new Map<string, DeepPanel>()
  for (const f of flows) {
    const at = times(f)
    for (const [name, column] of Object.entries(f.more).sort(([a], [b]) => a.localeCompare(b))) {
      if (!column.values.some(Number.isFinite)) continue
      const { title, unit } = unitOf(name)
      const key = `more-${unit || name}`
      const panel = more.get(key) ?? { key, title: unit ? 'Of this protocol alone' : title, unit, lines: [] }
      panel.lines.push({ name: who(f, title), points: column.values.map((v, i) => [at[i]!, v]), step: false })
      more.set(key, panel)
    }
  }
  for (const p of more.values()) out.push(p.lines.length === 1 ? { ...p, title: p.lines[0]!.name } : p)
  return out
}

const channelPanels: {
  column: 'loss' | 'bitErrorRate' | 'rateBps' | 'delayMs'
  key: string
  title: string
  unit: string
  scale: number
}[] = [
  { column: 'loss', key: 'loss', title: 'Channel: packets lost', unit: '%', scale: 100 },
  { column: 'bitErrorRate', key: 'ber', title: 'Channel: bit error rate', unit: '', scale: 1 },
  { column: 'rateBps', key: 'rate', title: 'Channel: rate', unit: 'kbit/s', scale: 1e-3 },
  { column: 'delayMs', key: 'delay', title: 'Channel: delay', unit: 'ms', scale: 1 },
]

function channelPanelsOf(channels: ChannelSeries[], end: number): DeepPanel[] {
  return channelPanels.flatMap((p) => {
    const lines = channels
      .filter((c) => c[p.column].length)
      .map((c): DeepLine => {
        const points = c[p.column].map((v, i): [number, number] => [c.at[i]!, v * p.scale])
        const last = points.at(-1)!
        // The last value holds until the trial ends.
        if (last[0] < end) points.push([end, last[1]])
        return { name: `${c.from} → ${c.to}`, points, step: true }
      })
    return lines.length ? [{ key: `channel-${p.key}`, title: p.title, unit: p.unit, lines }] : []
  })
}

/** When the last of it was seen, seconds since the trial's start. */
export function endOf(s: Pick<SeriesResponse, 'flows' | 'channels' | 'telemetry'>): number {
  const flows = s.flows.map((f) => (f.at.at(-1) ?? 0) + f.offsetSeconds)
  const others = [...s.channels, ...s.telemetry].map((c) => c.at.at(-1) ?? 0)
  return Math.max(...flows, ...(flows.length ? [] : others), 0)
}

export function deepPanels(s: Pick<SeriesResponse, 'flows' | 'channels' | 'telemetry'>): DeepPanel[] {
  return [
    ...flowPanelsOf(s.flows),
    ...channelPanelsOf(s.channels, endOf(s)),
    ...telemetryPanelsOf(s.telemetry, endOf(s)),
  ]
}

/** Finer panels laid into those of the whole, between two moments: the overview stays around them, for zooming out again. */
export function mergePanels(whole: DeepPanel[], fine: DeepPanel[], from: number, to: number): DeepPanel[] {
  return whole.map((p) => {
    const finer = fine.find((f) => f.key === p.key)
    if (!finer) return p
    return {
      ...p,
      lines: p.lines.map((l) => {
        const inner = finer.lines.find((f) => f.name === l.name)?.points.filter(([at]) => at >= from && at <= to)
        // A finer line that has nothing there knows nothing better: the overview stands.
        return inner?.length
          ? { ...l, points: [...l.points.filter(([at]) => at < from), ...inner, ...l.points.filter(([at]) => at > to)] }
          : l
      }),
    }
  })
}

/** The value of a line at a moment: the last at or before it where steps, else the nearest. */
export function valueAt(l: DeepLine, at: number): number {
  let low = 0
  let high = l.points.length
  while (low < high) {
    const mid = (low + high) >> 1
    if (l.points[mid]![0] <= at) low = mid + 1
    else high = mid
  }
  const before = l.points[low - 1]
  const after = l.points[low]
  if (l.step || !after) return before?.[1] ?? Number.NaN
  if (!before) return after[1]
  return at - before[0] <= after[0] - at ? before[1] : after[1]
}
