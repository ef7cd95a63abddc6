// A run sheet as the matrix that pages show.

export interface SheetView {
  /** Of every treatment and mix by its name, those of probes that run beside transfers too. */
  labels: Map<string, string>
  columns: { name: string; label: string; missing: string }[]
  rows: { iteration: number; trials: (number | undefined)[] }[]
  radioTitle: string
  topologyTitle: string
  settings: string
  /** Control shares the radio: nodes send nothing while a trial runs. */
  inBand: boolean
  /** Of the trials that a time bounds: seconds until the last flow ends, or without flows the last probe. */
  durations: Map<number, number>
  /** Seconds from a trial's start to a flow's, by trial and flow ("3 1"), where it is not 0. */
  offsets: Map<string, number>
  /** The trials without flows: they measure with probes alone, and have no throughput. */
  probeTrials: Set<number>
}

interface Sheet {
  control?: string
  cell: { label?: string; group?: string }
  radio: { title?: string }
  topology: { title?: string }
  treatments: { name: string; label: string; missing?: string }[]
  mixes?: { name: string; label: string; missing?: string }[]
  trials: SheetTrial[] | null
}
interface SheetTrial {
  index: number
  iteration: number
  treatment: string
  /** Null where the trial has probes alone. */
  flows: Span[] | null
  probes?: Span[]
}
interface Span {
  start_ns?: number
  duration_ns?: number
}

/** The matrix that a run sheet stands for, and when flows of a trial start and end. */
export function sheetView(sheet: Uint8Array): SheetView {
  const s = JSON.parse(new TextDecoder().decode(sheet)) as Sheet
  const trials = s.trials ?? []
  const used = new Set(trials.map((t) => t.treatment))
  const columns = [...s.treatments, ...(s.mixes ?? [])]
    .filter((t) => used.has(t.name) || t.missing)
    .map((t) => ({ name: t.name, label: t.label || t.name, missing: t.missing ?? '' }))
  const labels = new Map([...s.treatments, ...(s.mixes ?? [])].map((t) => [t.name, t.label || t.name]))
  const at = new Map(columns.map((c, i) => [c.name, i]))
  const rows = new Map<number, SheetView['rows'][number]>()
  const durations: SheetView['durations'] = new Map()
  const offsets: SheetView['offsets'] = new Map()
  const probeTrials: SheetView['probeTrials'] = new Set()
  for (const t of trials) {
    let row = rows.get(t.iteration)
    if (!row) rows.set(t.iteration, (row = { iteration: t.iteration, trials: columns.map(() => undefined) }))
    const column = at.get(t.treatment)
    if (column !== undefined) row.trials[column] = t.index
    const flows = t.flows ?? []
    if (!flows.length) probeTrials.add(t.index)
    const spans = flows.length ? flows : (t.probes ?? [])
    const ends = spans.map((f) => (f.duration_ns ? (f.start_ns ?? 0) + f.duration_ns : 0) / 1e9)
    if (ends.length && ends.every((e) => e > 0)) durations.set(t.index, Math.max(...ends))
    flows.forEach((f, i) => f.start_ns && offsets.set(`${t.index} ${i}`, f.start_ns / 1e9))
  }
  return {
    columns,
    labels,
    durations,
    offsets,
    probeTrials,
    rows: [...rows.values()],
    radioTitle: s.radio.title ?? '',
    topologyTitle: s.topology.title ?? '',
    inBand: s.control === 'in-band',
    settings: [s.cell.group, s.cell.label].filter(Boolean).join(' · '),
  }
}
