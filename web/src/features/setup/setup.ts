// What a person sets up on a laptop: which interface is the radio's, with which address,
// and whether the roles that have radios reach each other.
import type { Link } from '@/gen/linktrial/v1/fleet_pb'
import type { NodeInterface, NodeRadio, RadioRoute } from '@/gen/linktrial/v1/interface_pb'
import type { Node } from '@/gen/linktrial/v1/operator_pb'

export const roles = ['client', 'relay', 'server']

/** What fields of a card hold. */
export interface RadioForm {
  interface: string
  address: string
  role: string
  /** Bytes; empty: as it is. */
  mtu: string
  /** NETWORK over ADDRESS, one a line. */
  routes: string
  /** Of the catalog; empty: the radio is real and has no name. */
  profile: string
}

/** What is sent of a radio. */
export interface RadioOrder {
  interface: string
  address: string
  role: string
  mtuBytes: number
  routes: { to: string; via: string }[]
  profile: string
}

export const routesText = (routes: Pick<RadioRoute, 'to' | 'via'>[]): string =>
  routes.map((r) => `${r.to} over ${r.via}`).join('\n')

/** The order of a form; a text where the form cannot be sent, which says why. */
export function orderOf(f: RadioForm): RadioOrder | string {
  if (!f.interface) return 'Choose the interface that leads to the radio.'
  const mtu = f.mtu.trim()
  if (mtu && !/^\d{2,5}$/.test(mtu)) return `MTU “${mtu}”: give a number of bytes such as 1500, or leave it empty.`
  const routes: RadioOrder['routes'] = []
  for (const line of f.routes.split('\n').map((l) => l.trim())) {
    if (!line) continue
    const [, to, via] = /^(\S+)\s+over\s+(\S+)$/.exec(line) ?? []
    if (!to || !via) return `Route “${line}”: give one as 10.77.1.0/24 over 10.77.0.2.`
    routes.push({ to, via })
  }
  return {
    interface: f.interface,
    address: f.address.trim(),
    role: f.role,
    mtuBytes: Number(mtu),
    routes,
    profile: f.profile,
  }
}

/** A form with what is proposed, or what is set up already. */
export function formOf(r: Pick<NodeRadio, keyof Omit<RadioOrder, 'routes'> | 'routes'>): RadioForm {
  return {
    interface: r.interface,
    address: r.address,
    role: r.role,
    mtu: r.mtuBytes ? String(r.mtuBytes) : '',
    routes: routesText(r.routes),
    profile: r.profile,
  }
}

/** What an interface is, in one line. */
export function about(i: NodeInterface): string {
  const kind = i.kind === 'usb' ? 'USB' : i.kind
  const link = !i.up ? 'down' : !i.carrier ? 'no carrier' : i.speedMbit ? `${i.speedMbit} Mbit/s` : 'carrier'
  return [
    i.driver ? `${kind} (${i.driver})` : kind,
    link,
    `MTU ${i.mtuBytes} B`,
    i.addresses.join(', ') || 'no address',
    i.mac,
    i.receiving ? 'receives packets' : '',
  ]
    .filter(Boolean)
    .join(' · ')
}

/** Laptops that a radio can be set up on; nodes of a lab have theirs from there. */
export const laptops = (nodes: Node[]): Node[] => nodes.filter((n) => n.connected && !n.emulated && !n.virtual)

const hasRadio = (n: Node) => !!n.radioAddress

/** Which roles have radios, and which lack one, as a sentence. */
export function rolesLine(nodes: Node[]): string {
  const at = (role: string) => nodes.find((n) => n.role === role && hasRadio(n))
  const have = roles.flatMap((role) => {
    const n = at(role)
    return n ? [`${role} (${n.name}, ${n.radioAddress})`] : []
  })
  const missing = ['client', 'server'].filter((role) => !at(role))
  if (!have.length) return 'No laptop has a radio yet: a link needs a client and a server.'
  const with_ = `Radios: ${have.join(', ')}.`
  return missing.length ? `${with_} A link still needs a ${missing.join(' and a ')}.` : with_
}

/** Whether the radios reach each other, as it was measured last. */
export function reachLine(nodes: Node[], links: Link[]): string {
  const names = nodes.filter(hasRadio).map((n) => n.name)
  if (names.length < 2) return ''
  const pairs = names.flatMap((from) => names.filter((to) => to !== from).map((to) => [from, to] as const))
  const found = pairs.map(([from, to]) => links.find((l) => l.from === from && l.to === to))
  const cut = pairs.filter((_, i) => found[i] && !found[i].reachable)
  if (cut.length) return `Not reached over the radio: ${cut.map(([a, b]) => `${a} → ${b}`).join(', ')}.`
  if (found.some((l) => !l)) return 'Whether they reach each other is not known: start a preflight.'
  return 'They reach each other over the radio.'
}
