// How long a conformance suite still takes.
import type { ConformanceCheck, ConformanceResult } from '@/gen/linktrial/v1/lab_pb'

/**
 * Seconds that the whole suite still takes when these checks have ended: as long as
 * the others took in the last whole suite, since most of a check's time is waiting for
 * limits and outages. Undefined when the last suite had other checks, or there is none.
 */
export function timeLeft(
  last: Pick<ConformanceResult, 'checks'> | undefined,
  ended: readonly Pick<ConformanceCheck, 'name'>[],
  total: number,
): number | undefined {
  const open = new Map(last?.checks.map((c) => [c.name, c.seconds]))
  if (open.size !== total) return undefined
  for (const c of ended) if (!open.delete(c.name)) return undefined
  return [...open.values()].reduce((a, b) => a + b, 0)
}
