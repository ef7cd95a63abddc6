// Which differences a plan can find.
import type { ExplainPowerResponse } from '@/gen/linktrial/v1/operator_pb'

/** What a person asks beside the plan, as typed: percentages, empty for none. */
export interface PowerAsked {
  effect: string
  spread: string
}

/** The bounds of both, in percent (orchestrator/report/power.go). */
export const leastPercent = 0.1
export const mostPercent = 1000

/** A typed percentage as a share: 0 where nothing is typed, undefined where it cannot be used. */
export function shareOf(typed: string): number | undefined {
  const text = typed.replace('%', '').trim()
  if (!text) return 0
  const percent = Number(text)
  return percent >= leastPercent && percent <= mostPercent ? percent / 100 : undefined
}

/** What is wrong with a typed percentage; undefined: nothing. */
export const percentProblem = (typed: string) =>
  shareOf(typed) === undefined ? `Expected ${leastPercent} to ${mostPercent} %, found “${typed.trim()}”.` : undefined

/** The lines that are about a run, by its place in the plan. */
export const linesOf = (power: ExplainPowerResponse, run: number) =>
  power.lines.filter((l) => l.runs.includes(run)).map((l) => l.text)
