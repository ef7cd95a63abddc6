// How a laptop is attached to a radio, and what is read of the radio, as a
// profile says it, for people.
import { seconds } from './format'

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
export interface TelemetrySource {
  name: string
  kind: string
  on: string
  source: string
  poll: string
  interval_ns: number
  host?: string
  port?: number
  path?: string
  tls?: boolean
  snmp?: {
    version: string
    community_env?: string
    user?: string
    auth?: string
    auth_env?: string
    privacy?: string
    privacy_env?: string
  }
  values?: { name: string; oid?: string; pointer?: string; unit?: string; scale: number; counter?: boolean }[]
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
      row('MTU', () => (a.mtu_bytes ? `${a.mtu_bytes} B` : undefined)),
      row('Routes', (r) =>
        r.routes?.map((x) => (x.via ? `${x.to} via ${x.via}` : `${x.to} on the interface`)).join(', '),
      ),
      row('Forwarding', (r) => (r.forwarding === undefined ? undefined : r.forwarding ? 'on' : 'off')),
      row('The radio itself', (r) => r.radio ?? told),
    ],
  }
}

const kinds: Record<string, string> = { snmp: 'SNMP', http: 'HTTP', gpsd: 'gpsd', host: 'the laptop' }

/** "SNMP 2c at the radio, port 161", "HTTP at the radio, port 8077, /telemetry.json". */
export function telemetryWay(t: TelemetrySource): string {
  if (t.kind === 'host') return 'the laptop’s power supply'
  const kind = t.kind === 'http' && t.tls ? 'HTTPS' : (kinds[t.kind] ?? t.kind)
  const host = t.host === 'radio' ? 'the radio' : t.host
  return [
    `${kind}${t.snmp ? ` ${t.snmp.version === '3' ? 'v3' : t.snmp.version}` : ''}${host ? ` at ${host}` : ''}`,
    t.port ? `port ${t.port}` : '',
    t.path ?? '',
  ]
    .filter(Boolean)
    .join(', ')
}

/** When it is read: "every 5 s at most, between trials". */
export function telemetryPoll(t: TelemetrySource): string {
  const every = `every ${seconds(t.interval_ns / 1e9).replace(/\.0+ s$/, ' s')} at most`
  return `${every}, ${t.poll === 'always' ? 'during trials too' : 'between trials'}`
}

export const telemetryOn: Record<string, string> = {
  real: 'the real radio',
  emulated: 'the emulated one',
  both: 'both',
}

/** What names a figure at the radio: the OID, or where it stands in the JSON. */
export const valuePlace = (v: NonNullable<TelemetrySource['values']>[number]): string => v.oid ?? v.pointer ?? ''

export function valueNote(v: NonNullable<TelemetrySource['values']>[number]): string {
  return [v.unit, v.scale !== 1 ? `read × ${v.scale}` : '', v.counter ? 'only grows' : ''].filter(Boolean).join(', ')
}
