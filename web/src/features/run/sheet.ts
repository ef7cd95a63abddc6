// A run sheet as the matrix that pages show.

export interface SheetView {
  columns: { name: string; label: string; missing: string }[]
  rows: { iteration: number; trials: (number | undefined)[] }[]
  radioTitle: string
  topologyTitle: string
  settings: string
  /** Control shares the radio: nodes send nothing while a trial runs. */
  inBand: boolean
  /** Of the trials whose flows a time bounds: seconds until the last of them ends. */
  durations: Map<number, number>
}

interface Sheet {
  control?: string
  cell: { label?: string; group?: string }
  radio: { title?: string }
  topology: { title?: string }
  treatments: { name: string; label: string; missing?: string }[]
  mixes?: { name: string; label: string; missing?: string }[]
  trials:
    | { index: number; iteration: number; treatment: string; flows: { start_ns?: number; duration_ns?: number }[] }[]
    | null
}

/** The matrix that a run sheet stands for, and when each flow of a trial starts. */
export function sheetView(run: string, sheet: Uint8Array, offsets?: Map<string, number>): SheetView {
  const s = JSON.parse(new TextDecoder().decode(sheet)) as Sheet
  const trials = s.trials ?? []
  const used = new Set(trials.map((t) => t.treatment))
  const columns = [...s.treatments, ...(s.mixes ?? [])]
    .filter((t) => used.has(t.name) || t.missing)
    .map((t) => ({ name: t.name, label: t.label || t.name, missing: t.missing ?? '' }))
  const at = new Map(columns.map((c, i) => [c.name, i]))
  const rows = new Map<number, SheetView['rows'][number]>()
  const durations: SheetView['durations'] = new Map()
  for (const t of trials) {
    let row = rows.get(t.iteration)
    if (!row) rows.set(t.iteration, (row = { iteration: t.iteration, trials: columns.map(() => undefined) }))
    const column = at.get(t.treatment)
    if (column !== undefined) row.trials[column] = t.index
    const ends = t.flows.map((f) => (f.duration_ns ? (f.start_ns ?? 0) + f.duration_ns : 0) / 1e9)
    if (ends.every((e) => e > 0)) durations.set(t.index, Math.max(...ends))
    t.flows.forEach((f, i) => f.start_ns && offsets?.set(`${run} ${t.index} ${i}`, f.start_ns / 1e9))
  }
  return {
    columns,
    durations,
    rows: [...rows.values()],
    radioTitle: s.radio.title ?? '',
    topologyTitle: s.topology.title ?? '',
    inBand: s.control === 'in-band',
    settings: [s.cell.group, s.cell.label].filter(Boolean).join(' · '),
  }
}
