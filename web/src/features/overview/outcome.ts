// What a campaign's comparison comes to, in one line, how many of its trials are valid, and the values of its last run. Pure.
import { placeLabel } from '@/features/results/model'
import type { RunSummary, SummarizeResponse } from '@/gen/linktrial/v1/result_pb'

export interface Outcome {
  valid: number
  planned: number
  /** Empty: nothing is compared. */
  text: string
  /** Of the last run with values. */
  last?: RunValues
}

export interface RunValues {
  where: string
  rows: TreatmentValues[]
}

/** Throughputs in bytes per second. */
export interface TreatmentValues {
  name: string
  label: string
  average: number
  min: number
  max: number
  valid: number
  attempted: number
}

export function outcomeOf(s: SummarizeResponse): Outcome {
  const rows = s.runs.flatMap((r) => r.treatments)
  const leads = s.runs.flatMap((r) => (r.lead ? [r.lead] : []))
  return {
    valid: rows.reduce((n, t) => n + t.valid, 0),
    planned: rows.reduce((n, t) => n + t.planned, 0),
    text:
      leads.length > 1
        ? ofSeveral(leads)
        : [leads[0]?.text, s.runs.length > 1 && `in 1 of ${s.runs.length} runs`]
            .filter((x) => leads[0] && x)
            .join(', '),
    last: s.runs.map(valuesOf).findLast((r) => r.rows.length),
  }
}

function valuesOf(r: RunSummary): RunValues {
  return {
    where: placeLabel(r),
    rows: r.treatments
      .filter((t) => t.valid)
      .map(({ name, label, average, min, max, valid, attempted }) => {
        return { name, label: label || name, average, min, max, valid, attempted }
      }),
  }
}

function ofSeveral(leads: { leader: string; decided: boolean }[]): string {
  const count = new Map<string, { leads: number; decided: number }>()
  for (const l of leads) {
    if (!l.leader) continue
    const known = count.get(l.leader) ?? { leads: 0, decided: 0 }
    count.set(l.leader, { leads: known.leads + 1, decided: known.decided + (l.decided ? 1 : 0) })
  }
  const [best] = [...count].sort(([, a], [, b]) => b.leads - a.leads || b.decided - a.decided)
  if (!best) return `No treatment leads in any of ${leads.length} runs`
  return `${best[0]} leads in ${best[1].leads} of ${leads.length} runs: ${best[1].decided} decided`
}
