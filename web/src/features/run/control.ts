// What passed between nodes and orchestrator during an attempt, with in-band control.
import type { AttemptRow } from '@/gen/linktrial/v1/operator_pb'

/** One sentence for each node; none where control is out-of-band or it is not decided yet. */
export function controlTexts(a: Pick<AttemptRow, 'control'>): string[] {
  return a.control.map((c) =>
    c.unknown
      ? `${c.role}: not known, ${c.unknown}`
      : c.packets > 0n
        ? `${c.role}: ${c.packets} with ${c.bytes} B`
        : `${c.role}: none`,
  )
}
