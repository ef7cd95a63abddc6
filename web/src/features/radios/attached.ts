// Which nodes have a radio now.
import type { Node, Run } from '@/gen/linktrial/v1/operator_pb'

/** The radio that an emulated node has: of the newest run that began on it, else of its lab. */
function emulatedRadio(node: string, runs: Run[], lab: string): string {
  return runs.find((r) => r.started && r.place === 'emulated, real time' && r.nodes.includes(node))?.radio ?? lab
}

/** Connected nodes with a radio of the profile, real or emulated; runs: newest first. */
export function attachedTo(radio: string, nodes: Node[], runs: Run[], lab: string): Node[] {
  return nodes.filter(
    (n) => n.connected && !n.virtual && (n.emulated ? emulatedRadio(n.name, runs, lab) : n.radio) === radio,
  )
}

/** What connected nodes have, the first of them: the radio that a page opens with. */
export function radioInUse(nodes: Node[], runs: Run[], lab: string): string | undefined {
  for (const n of nodes) {
    const radio = n.connected && !n.virtual ? (n.emulated ? emulatedRadio(n.name, runs, lab) : n.radio) : ''
    if (radio) return radio
  }
  return undefined
}
