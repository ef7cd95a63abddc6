// The short code by which laptops join: its state in words, and who joined with it.
import { GetJoiningResponse_State as State, type GetJoiningResponse } from '@/gen/linktrial/v1/join_pb'
import { NodeIdentity_State as Identity, type NodeIdentity } from '@/gen/linktrial/v1/enrol_pb'
import { date, wholeSeconds } from '@/lib/format'
import { identityState, joinedState, type State as Mark } from '@/lib/states'

/** What is typed on the other laptop. With an address it need not search for the orchestrator. */
export const joinCommand = (code: string, address?: string): string =>
  `linktrial join ${code}${address ? ` --address ${address}` : ''}`

/** How long a code can still be used, as "9 min 5 s"; empty once it cannot. */
export function timeLeft(j: Pick<GetJoiningResponse, 'state' | 'expires'>, now: number): string {
  const end = date(j.expires)?.getTime()
  if (j.state !== State.OPEN || end === undefined || end <= now) return ''
  const seconds = Math.ceil((end - now) / 1000)
  const minutes = Math.floor(seconds / 60)
  return minutes ? `${minutes} min ${seconds % 60} s` : wholeSeconds(seconds)
}

export const triesLeft = (n: number): string => (n === 1 ? '1 wrong try' : `${n} wrong tries`)

/** Why a code can no longer be used; empty while it can. */
export function ended(state: State): string {
  switch (state) {
    case State.OPEN:
      return ''
    case State.EXPIRED:
      return 'The code has expired. Open a new one for further laptops.'
    case State.TRIED:
      return 'The code was closed after five wrong tries. If nobody mistyped it, somebody on the network tries codes: open a new one when only your laptops are connected.'
    case State.CLOSED:
      return 'The code was closed. Open a new one for further laptops.'
  }
  return 'The orchestrator has no code any more: it was restarted. Open a new one.'
}

export interface Laptop {
  name: string
  state: Mark
}

/** The laptops that joined, each with how far it has come: got its token, enrolled, connected. */
export function laptops(j: Pick<GetJoiningResponse, 'joined'>, identities: NodeIdentity[]): Laptop[] {
  const byName = new Map(identities.map((n) => [n.name, n]))
  const joined = new Map(j.joined.map((l) => [l.name, l])) // one that joined again is listed once
  return [...joined.values()].map(({ name, at }) => {
    const n = byName.get(name)
    // What a replaced laptop of the name had is not this one's.
    const enrolledSince = (date(n?.enrolled)?.getTime() ?? 0) >= (date(at)?.getTime() ?? 0)
    if (!n || (n.state === Identity.ENROLLED && !enrolledSince)) return { name, state: joinedState(false) }
    if (n.state === Identity.ENROLLED && n.connected) return { name, state: joinedState(true) }
    return { name, state: n.state === Identity.INVITED ? joinedState(false) : identityState(n.state) }
  })
}
