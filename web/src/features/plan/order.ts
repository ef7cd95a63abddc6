// The compiled order of a plan: for each run its iterations by treatments.
import type { ExplainPlanResponse } from '@/gen/linktrial/v1/operator_pb'
import { bytes } from '@/lib/format'

export interface OrderCell {
  /** Place within the iteration, from 1. */
  place: number
  seconds: number
}
export interface OrderRow {
  iteration: number
  cells: (OrderCell | undefined)[]
  seconds: number
}
export interface RunOrder {
  title: string
  seconds: number
  trials: number
  columns: { name: string; label: string; missing: string }[]
  rows: OrderRow[]
}

interface Sheet {
  cell: { radio: string; topology: string; size_bytes: number; group?: string; label?: string }
  treatments: { name: string; label: string; missing?: string }[]
  mixes?: { name: string; label: string; missing?: string }[]
  trials: { iteration: number; treatment: string }[] | null
  stop?: object
}

const read = (b: Uint8Array) => JSON.parse(new TextDecoder().decode(b)) as Sheet

function titleOf(s: Sheet): string {
  return [s.cell.group, s.cell.radio, s.cell.topology, bytes(s.cell.size_bytes), s.cell.label]
    .filter(Boolean)
    .join(' · ')
}

/** The runs' names for a list; the last ones by number where there are very many. */
export function runTitles(e: ExplainPlanResponse, most = 500): string[] {
  return e.sheets.map((s, i) => (i < most ? titleOf(read(s.sheet)) : `run ${i + 1}`))
}

export function orderOf(e: ExplainPlanResponse, run: number): RunOrder | undefined {
  const summary = e.sheets[run]
  if (!summary) return undefined
  const s = read(summary.sheet)
  const trials = s.trials ?? []
  const used = new Set(trials.map((t) => t.treatment))
  // Treatments without trials of their own that are not missing are only parts of mixes.
  const columns = [...s.treatments, ...(s.mixes ?? [])]
    .filter((t) => used.has(t.name) || t.missing)
    .map((t) => ({ name: t.name, label: t.label || t.name, missing: t.missing ?? '' }))
  const at = new Map(columns.map((c, i) => [c.name, i]))
  const rows = new Map<number, OrderRow>()
  trials.forEach((t, i) => {
    let row = rows.get(t.iteration)
    if (!row) rows.set(t.iteration, (row = { iteration: t.iteration, cells: columns.map(() => undefined), seconds: 0 }))
    const seconds = summary.trialSeconds[i] ?? Number.NaN
    const column = at.get(t.treatment)
    if (column !== undefined) row.cells[column] = { place: row.cells.filter(Boolean).length + 1, seconds }
    row.seconds += seconds
  })
  return {
    title: titleOf(s),
    seconds: summary.estimatedSeconds,
    trials: trials.length,
    columns,
    rows: [...rows.values()],
  }
}

/** Whether a run has a rule to stop by, so that its time is the longest that it may take. */
export const mayEndEarly = (e: ExplainPlanResponse) => e.sheets.some((s) => read(s.sheet).stop !== undefined)
