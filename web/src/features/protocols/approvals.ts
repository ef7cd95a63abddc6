// Which drivers new run sheets accept, by digest, and which the nodes have.
import type { AcceptedDriver, DriverOnNode } from '@/gen/linktrial/v1/trust_pb'

export const protocolPages = [
  { to: '/protocols', title: 'Drivers' },
  { to: '/protocols/approvals', title: 'Approvals' },
]

/** One driver of one digest, as the nodes have it. */
export interface DriverOnNodes {
  protocol: string
  digest: string
  versions: string[]
  nodes: string[]
}

export type AcceptedOnNodes = AcceptedDriver & Pick<DriverOnNodes, 'versions' | 'nodes'>

export const driverKey = (d: { protocol: string; digest: string }) => `${d.protocol}@${d.digest}`

/** Drivers that nodes have: each digest once, with the nodes that have it. */
export function byDigest(drivers: DriverOnNode[]): DriverOnNodes[] {
  const out = new Map<string, DriverOnNodes>()
  for (const d of drivers) {
    const found = out.get(driverKey(d)) ?? { protocol: d.protocol, digest: d.digest, versions: [], nodes: [] }
    out.set(driverKey(d), found)
    if (!found.nodes.includes(d.node)) found.nodes.push(d.node)
    if (d.version && !found.versions.includes(d.version)) found.versions.push(d.version)
  }
  return [...out.values()].sort((a, b) => a.protocol.localeCompare(b.protocol) || a.digest.localeCompare(b.digest))
}

/** "image:sha256:1f3a…" is of an image, "sha256:705c…" of a folder. */
export function digestKind(digest: string): 'image' | 'folder' {
  return digest.startsWith('image:') ? 'image' : 'folder'
}

/** As the command line shortens it; the whole is in the title of what shows it. */
export const digestShort = (digest: string): string => `${digest.slice(0, digest.lastIndexOf(':') + 13)}…`

/** What "tcp@sha256:705c…" names, as protocol approvals prints it; undefined where it is none. */
export function parseDriver(text: string): { protocol: string; digest: string } | undefined {
  const m = /^([a-z0-9-]+)@((?:image:)?sha256:[0-9a-f]{64})$/.exec(text.trim())
  return m ? { protocol: m[1]!, digest: m[2]! } : undefined
}
