// The end of a day: which day it is, and what the summary of a closed one says. Pure.
import type { DayRun, DaySummary } from '@/gen/linktrial/v1/day_pb'

/** The date of a moment in a time zone, as 2026-11-30. */
export function dateIn(zone: string, now: Date): string {
  // The form of Sweden is that of ISO 8601.
  return new Intl.DateTimeFormat('sv-SE', { timeZone: zone, year: 'numeric', month: '2-digit', day: '2-digit' }).format(
    now,
  )
}

/** The zones that are offered: the viewer's and UTC, each once. */
export const zones = (own: string): string[] => [...new Set([own, 'UTC'].filter(Boolean))]

const checks = (n: number, what: string) => `${n} ${n === 1 ? 'check' : 'checks'} ${what}`

/** The outcome of a run's audit. */
export function auditText(r: DayRun): string {
  if (r.failure) return `not audited: ${r.failure}`
  const found = r.findings === 0 ? 'no findings' : r.findings === 1 ? '1 finding' : `${r.findings} findings`
  const parts = [checks(r.passed, 'passed')]
  if (r.partly) parts.push(`${r.partly} partly checked`)
  if (r.notChecked) parts.push(`${r.notChecked} not checked`)
  return `${found}; ${parts.join(', ')}`
}

/** What the archive lacks, and findings: a sentence each. */
export function dayTroubles(s: DaySummary): string[] {
  const out: string[] = []
  for (const c of s.campaigns) {
    for (const r of c.runs) {
      for (const f of r.first) out.push(`Run ${r.id}, ${f}`)
      const more = r.findings - r.first.length
      if (more > 0 && r.first.length) out.push(`Run ${r.id}: and ${more} more findings, in the archive`)
    }
    for (const f of c.failures) out.push(`Campaign ${c.id}, not exported: ${f}`)
  }
  if (s.backup?.failure) out.push(`No backup: ${s.backup.failure}`)
  return out
}

/** Whether everything is audited without findings, exported, and complete. */
export const dayIsWell = (s: DaySummary): boolean =>
  dayTroubles(s).length === 0 &&
  s.incomplete.length === 0 &&
  s.campaigns.every((c) => c.runs.every((r) => !r.failure && r.findings === 0))
