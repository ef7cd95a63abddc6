// Time series of attempts as figures draw them: on the trial's clock, gaps as
// NaN, and finer data laid into the overview where one has zoomed in. Pure.
import type { ChannelSeries, Column, FlowSeries, RunSummary, SeriesResponse } from '@/gen/linktrial/v1/result_pb'
import { KB } from '@/lib/number'
import { capital, unitOf } from '@/lib/format'
import type { DeepLine, DeepPanel } from './panels'
import { telemetryPanelsOf } from '@/features/telemetry/model'

export interface SequenceLine {
  name: string
  treatment: string
  trial: number
  attempt: number
  /** Seconds since the first flow's clock of the trial started, and bytes. */
  points: number[][]
}

/** What a trial of an iteration is of: the treatment or mix that tables name. */
export type TrialsOf = ReadonlyMap<number, { name: string; label: string }>

/** Of the run's trials with transfers; those of probes alone are not among them. */
export function trialsOf(r: RunSummary | undefined): TrialsOf {
  const out = new Map<number, { name: string; label: string }>()
  r?.points?.trial.forEach((trial, i) => {
    const t = r.treatments[r.points!.treatment[i]!]
    if (t) out.set(trial, { name: t.name, label: t.label || t.name })
  })
  return out
}

/** The senders' bytes over time, of every flow of an iteration. Probes carry no bytes that anybody waits for. */
export function sequenceLines(flows: FlowSeries[], trials: TrialsOf, probes: ReadonlySet<string>): SequenceLine[] {
  const senders = flows.filter((f) => f.side !== 'server' && trials.has(f.trial) && !probes.has(f.treatment))
  return senders.map((f) => {
    const siblings = senders.filter((x) => x.trial === f.trial && x.attempt === f.attempt)
    const start = f.offsetSeconds - Math.min(...siblings.map((x) => x.offsetSeconds))
    const bytes = valuesOf(f, 'acked_bytes') ?? valuesOf(f, 'sent_bytes') ?? []
    const points = f.at.map((at, i) => [start + at, bytes[i] ?? Number.NaN])
    if (points.length && points[0]![0]! > start) points.unshift([start, 0])
    const of = trials.get(f.trial)!
    const own = f.label || f.treatment
    return {
      name: [of.label, of.name === f.treatment ? '' : own, siblings.length > 1 ? `flow ${f.flow}` : '']
        .filter(Boolean)
        .join(', '),
      treatment: of.name,
      trial: f.trial,
      attempt: f.attempt,
      points,
    }
  })
}

/** The values of a flow's column; undefined where the protocol does not know the metric. */
function valuesOf(f: FlowSeries, name: string): number[] | undefined {
  return f.columns.find((c) => c.name === name)?.values
}

/** A value as large as this is a protocol's "not limited yet" (Linux: the slow start threshold at first). */
const unlimitedBytes = 1e9

/** A column as a line of a panel. */
interface ColumnSpec {
  column: string
  name: string
  scale: number
}
/** The columns that have a place of their own, by the names of the driver contract. */
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
      { column: 'sent_bytes', name: 'sent', scale: 1 / KB },
      { column: 'acked_bytes', name: 'acknowledged', scale: 1 / KB },
      { column: 'transmitted_bytes', name: 'sent, with those again', scale: 1 / KB },
      { column: 'retransmitted_bytes', name: 'sent again', scale: 1 / KB },
    ],
  },
  {
    key: 'window',
    title: 'Window',
    unit: 'KB',
    columns: [
      { column: 'cwnd_bytes', name: 'congestion window', scale: 1 / KB },
      { column: 'ssthresh_bytes', name: 'slow start threshold', scale: 1 / KB },
      { column: 'flight_bytes', name: 'in flight', scale: 1 / KB },
    ],
  },
  {
    key: 'rtt',
    title: 'Round trip',
    unit: 's',
    columns: [
      { column: 'srtt_us', name: 'smoothed RTT', scale: 1e-6 },
      { column: 'rttvar_us', name: 'its variation', scale: 1e-6 },
      { column: 'rto_us', name: 'timeout (RTO)', scale: 1e-6 },
      { column: 'min_rtt_us', name: 'least RTT', scale: 1e-6 },
    ],
  },
  {
    key: 'events',
    title: 'Retransmissions, in all',
    unit: '',
    columns: [
      { column: 'retransmits', name: 'retransmissions', scale: 1 },
      { column: 'timeouts', name: 'timeouts', scale: 1 },
      { column: 'loss_events', name: 'loss events', scale: 1 },
    ],
  },
  {
    key: 'rate',
    title: 'Rate',
    unit: 'kbit/s',
    columns: [
      { column: 'pacing_bps', name: 'pacing', scale: 1e-3 },
      { column: 'bandwidth_bps', name: 'own estimate', scale: 1e-3 },
    ],
  },
]

/** Units as the other panels have them: 1.5M µs is 1500 ms. */
const readable: Record<string, { unit: string; scale: number }> = {
  µs: { unit: 'ms', scale: 1e-3 },
  bytes: { unit: 'KB', scale: 1 / KB },
  'bit/s': { unit: 'kbit/s', scale: 1e-3 },
}

/** Of the field, in names of drivers. */
const abbreviations = /\b(ecn|mss|rtt|rto|sack)\b/g

const times = (f: FlowSeries) => f.at.map((at) => f.offsetSeconds + at)

function flowPanelsOf(flows: FlowSeries[]): DeepPanel[] {
  const several = new Set(flows.map((f) => f.flow)).size > 1
  const who = (f: FlowSeries, name: string) => {
    const of = several ? `flow ${f.flow} ${f.label || f.treatment}` : ''
    const what = f.side === 'server' ? (name === 'sent' ? 'received' : `${name} at the receiver`) : name
    return [of, what].filter(Boolean).join(': ')
  }
  const line = (f: FlowSeries, c: Column, name: string, scale: number): DeepLine => {
    const at = times(f)
    const unlimited = c.name === 'ssthresh_bytes' ? unlimitedBytes : Infinity
    const points = c.values.map((v, i): [number, number] => [at[i]!, v >= unlimited ? Number.NaN : v * scale])
    return { name: who(f, name), points, step: c.kind === 'counter' }
  }
  const out: DeepPanel[] = []
  for (const p of flowPanels) {
    const lines = flows
      .flatMap((f) =>
        p.columns.flatMap((spec) => {
          const c = f.columns.find((x) => x.name === spec.column)
          return c ? [line(f, c, spec.name, spec.scale)] : []
        }),
      )
      .filter((l) => l.points.some(([, y]) => Number.isFinite(y)))
    if (lines.length) out.push({ key: p.key, title: p.title, unit: p.unit, whole: p.key === 'events', lines })
  }
  // All other columns: a panel for each unit and each name without one.
  const placed = new Set(flowPanels.flatMap((p) => p.columns.map((c) => c.column)))
  const more = new Map<string, DeepPanel>()
  for (const f of flows) {
    const others = f.columns.filter((c) => !placed.has(c.name) && c.values.some(Number.isFinite))
    for (const c of others.sort((a, b) => a.name.localeCompare(b.name))) {
      const own = unitOf(c.name)
      const { unit, scale } = readable[own.unit] ?? { unit: own.unit, scale: 1 }
      const title = own.title.replace(abbreviations, (s) => s.toUpperCase())
      const key = `more-${unit || c.name}`
      const panel = more.get(key) ?? { key, title: unit ? 'Other metrics' : title, unit, lines: [] }
      panel.lines.push(line(f, c, title, scale))
      more.set(key, panel)
    }
  }
  for (const p of more.values()) {
    const title = p.lines.length === 1 ? p.lines[0]!.name : p.title
    out.push({ ...p, title: capital(title) })
  }
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
