// Which machines may act as nodes: certificates, open tokens, and whether this
// orchestrator asks for any.
import {
  GetAuthorityResponse_Mode as Mode,
  NodeIdentity_State as State,
  type NodeIdentity,
} from '@/gen/linktrial/v1/enrol_pb'
import { date } from '@/lib/format'

export const fleetPages = [
  { to: '/fleet', title: 'State and preflight' },
  { to: '/fleet/identities', title: 'Identities' },
]

/** Why nodes need no identity here; empty where they do. */
export function noIdentities(mode: Mode | undefined): string {
  if (mode === Mode.LOOPBACK)
    return 'This orchestrator listens on its own machine only, without encryption: nodes need no identity here.'
  if (mode === Mode.OPEN)
    return 'This orchestrator was started with --open: it does not encrypt and does not check which node calls.'
  return ''
}

/** Agents renew after two thirds of a certificate's life: one in the last sixth has not reached the orchestrator since. */
export function renewalIsLate(n: Pick<NodeIdentity, 'state' | 'enrolled' | 'expires'>, now = Date.now()): boolean {
  const from = date(n.enrolled)?.getTime()
  const to = date(n.expires)?.getTime()
  return n.state === State.ENROLLED && from !== undefined && to !== undefined && to - now < (to - from) / 6
}

/** What is typed on the node, with the address of the orchestrator as this page has it. */
export const enrolCommand = (origin: string): string => `linktrial node enrol --orchestrator ${origin} --token-file -`

/** The page was reached by an address that leads nowhere from a node. */
export const onOwnMachine = (hostname: string): boolean => /^(localhost|127(\.\d+){3}|\[?::1\]?)$/.test(hostname)
