// The checks of a preflight, in the order that matters. Pure.
import { CheckState, type Check } from '@/gen/linktrial/v1/fleet_pb'

/** What is worst of a list of checks: what one looks at first. */
export function worst(checks: Check[]): CheckState {
  const order = [CheckState.FAILED, CheckState.WARNING, CheckState.UNKNOWN, CheckState.OK, CheckState.UNSPECIFIED]
  return order.find((s) => checks.some((c) => c.state === s)) ?? CheckState.UNSPECIFIED
}

/** Red first, and within a state by node and kind. */
export function bySeverity(checks: Check[]): Check[] {
  const rank: Record<number, number> = {
    [CheckState.FAILED]: 0,
    [CheckState.WARNING]: 1,
    [CheckState.UNKNOWN]: 2,
    [CheckState.UNSPECIFIED]: 3,
    [CheckState.OK]: 4,
  }
  return [...checks].sort(
    (a, b) =>
      rank[a.state]! - rank[b.state]! ||
      a.node.localeCompare(b.node) ||
      a.kind.localeCompare(b.kind) ||
      a.peer.localeCompare(b.peer),
  )
}

/** What a preflight has found of one treatment of its plan. */
export interface TreatmentLine {
  name: string
  state: CheckState
  /** works, blocked, not supported …; empty where it is said in other words. */
  verdict: string
  /** Where it is blocked, why it is not supported, what was carried. */
  found: string
  remedy: string
}

export const ofTreatment = (c: Pick<Check, 'kind'>) => c.kind === 'treatment'

/** The treatments of a preflight's plan, in its order: found is "NAME: VERDICT: …" (orchestrator/fleet). */
export function treatmentLines(checks: Check[]): TreatmentLine[] {
  return checks.filter(ofTreatment).map((c) => {
    const [, name = '', rest = c.found] = /^([^:]*): (.*)$/s.exec(c.found) ?? []
    const verdict = /^(works, and is slow|works|blocked|not supported|not ready|not carried)\b/.exec(rest)?.[1] ?? ''
    return { name, state: c.state, verdict, found: rest.slice(verdict.length).replace(/^[,:] /, ''), remedy: c.remedy }
  })
}
