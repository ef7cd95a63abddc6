// How a laptop is attached to a radio, and what is read of the radio, as a
// profile says it, for people.
import { exactBytes } from './format'

export interface AttachRole {
  interface?: string
  address?: string
  radio?: string
  routes?: { to: string; via?: string }[]
  forwarding?: boolean
}
export interface Attach {
  reach: string
  source: string
  interface?: string
  mtu_bytes?: number
  roles?: Partial<Record<'client' | 'relay' | 'server', AttachRole>>
}

const open = 'not stated'
const told = 'as its agent is told'

/** What is set up on the nodes: a column for what all have in common, or one for each role that differs. */
export function attachTable(a: Attach): { columns: string[]; rows: [string, string[]][] } {
  const roles = (['client', 'relay', 'server'] as const).filter((r) => a.roles?.[r])
  const of = roles.length
    ? roles.map((r): AttachRole => ({ interface: a.interface, ...a.roles![r] }))
    : [{ interface: a.interface }]
  const row = (what: string, tell: (r: AttachRole) => string | undefined): [string, string[]] => [
    what,
    of.map((r) => tell(r) || open),
  ]
  return {
    columns: roles.length ? roles : ['every node'],
    rows: [
      row('Interface', (r) => r.interface ?? told),
      row('Address', (r) => r.address),
      row('MTU', () => (a.mtu_bytes ? exactBytes(a.mtu_bytes) : undefined)),
      row('Routes', (r) =>
        r.routes?.map((x) => (x.via ? `${x.to} via ${x.via}` : `${x.to} on the interface`)).join(', '),
      ),
      row('Forwarding', (r) => (r.forwarding === undefined ? undefined : r.forwarding ? 'on' : 'off')),
      row('The radio itself', (r) => r.radio ?? told),
    ],
  }
}

export const telemetryOn: Record<string, string> = {
  real: 'the real radio',
  emulated: 'the emulated one',
  both: 'the real radio and the emulated one',
}

/** What is made of the number that a source has. */
export function valueNote(v: { unit: string; scale: number; counter: boolean }): string {
  return [v.unit, v.scale !== 1 ? `read × ${v.scale}` : '', v.counter ? 'only grows' : ''].filter(Boolean).join(', ')
}
