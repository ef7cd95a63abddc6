// How long a conformance suite still takes.
import type { ConformanceCheck, ConformanceResult } from '@/gen/linktrial/v1/lab_pb'

type Ended = Pick<ConformanceCheck, 'name' | 'seconds'>

/**
 * Milliseconds that the whole suite still took when its last check ended, by how long
 * each check took in the last whole suite and how fast this one has been; undefined
 * while that is not known. The last suite must have had the same checks.
 */
export function timeLeft(
  last: Pick<ConformanceResult, 'checks'> | undefined,
  ended: readonly Ended[],
  total: number,
  elapsed: number,
): number | undefined {
  const before = new Map(last?.checks.map((c) => [c.name, c.seconds]))
  if (before.size !== total || !ended.every((c) => before.has(c.name))) return undefined
  let done = 0
  for (const c of ended) done += before.get(c.name)!
  // Of a second or less no pace can be told.
  if (done <= 1) return undefined
  const all = [...before.values()].reduce((a, b) => a + b, 0)
  return (elapsed * (all - done)) / done
}
