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
