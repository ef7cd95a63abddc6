// What was told: which of it is shown and counted, where it leads, and whether this browser can tell it. Pure.
import type { Notification } from '@/gen/linktrial/v1/notification_pb'

/** How many of the newest notifications a tab knows: those that the bell can count. */
export const KNOWN = 100

type Id = Pick<Notification, 'id'>

/** All of both lists, newest first, each once. */
export function merged<N extends Id>(a: readonly N[], b: readonly N[]): N[] {
  const byId = new Map([...b, ...a].map((n) => [n.id, n]))
  return [...byId.values()].sort((x, y) => (x.id < y.id ? 1 : -1))
}

/** Those of a kind; of all kinds where it is empty. */
export function ofKind<N extends Pick<Notification, 'kind'>>(all: readonly N[], kind: string): N[] {
  return all.filter((n) => !kind || n.kind === kind)
}

/** The largest id; 0 where there is none. */
export const newest = (all: readonly Id[]): bigint => all.reduce((most, n) => (n.id > most ? n.id : most), 0n)

/** An id as this browser keeps it; what is not one is 0. */
export const idOf = (kept: string): bigint => (/^\d{1,18}$/.test(kept) ? BigInt(kept) : 0n)

/** How many came after the last one that a person saw. */
export const unseenCount = (all: readonly Id[], seen: bigint): number => all.filter((n) => n.id > seen).length

/** A count as the bell shows it; empty for none. */
export const bellText = (unseen: number): string => (unseen >= KNOWN ? `${KNOWN - 1}+` : unseen ? String(unseen) : '')

/** What a screen reader says of the bell. */
export const bellLabel = (unseen: number): string =>
  unseen ? `Notifications, ${bellText(unseen)} not seen yet` : 'Notifications'

/** A path that is one of these pages; empty where it leads anywhere else. */
export function ownPath(path: string): string {
  return /^\/(?![/\\])[\w\-.~!$&'()*+,;=:@%/?#]*$/.test(path) && !/\/\/|\/\.\.?(?:\/|$)/.test(path) ? path : ''
}

export interface Abilities {
  /** The page came encrypted, or from this machine. */ secure: boolean
  /** There is a Notification API. */ api: boolean
  permission: NotificationPermission
  /** A person turned them on in this browser. */ on: boolean
  /** The browser refused to make one, although it has the API. */ refused: boolean
}
export interface Ability {
  state: 'on' | 'off' | 'impossible'
  /** What it means, and what to do. */ text: string
}

const elsewhere = 'use a webhook or e-mail instead.'

/** Whether this browser shows notifications, and why not. */
export function ability(a: Abilities): Ability {
  const impossible = (text: string): Ability => ({ state: 'impossible', text })
  if (!a.secure)
    return impossible(
      `Browsers show notifications only of pages that came encrypted or from the same machine. Start the orchestrator with linktrial serve --tls and open its https address, or ${elsewhere}`,
    )
  if (!a.api)
    return impossible(`This browser has no notifications of pages. Open Linktrial in another one, or ${elsewhere}`)
  if (a.permission === 'denied')
    return impossible(
      'This browser is set to refuse notifications of this address. Allow them in its settings for this site (beside the address), then come back to this page.',
    )
  if (a.refused)
    return impossible(
      `This browser shows no notifications of open pages, as browsers on phones often do not. Open Linktrial on a computer, or ${elsewhere}`,
    )
  if (a.on && a.permission === 'granted')
    return {
      state: 'on',
      text: 'On: this browser shows each notification as it comes, as long as a page of Linktrial is open in any of its tabs.',
    }
  return {
    state: 'off',
    text: 'Off. When it is on, this browser shows each notification as it comes, as long as a page of Linktrial is open in any of its tabs.',
  }
}
