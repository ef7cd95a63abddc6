// Roles, tokens and safe addresses. Pure.
import { Role, type Token } from '@/gen/linktrial/v1/access_pb'
import { date } from '@/lib/format'
import type { TokenState } from '@/lib/states'

export type RoleName = 'viewer' | 'director' | 'admin'

export const roles: { value: Role; name: RoleName; text: string }[] = [
  { value: Role.VIEWER, name: 'viewer', text: 'sees everything but users and the audit log' },
  { value: Role.DIRECTOR, name: 'director', text: 'also plans, starts and controls runs' },
  { value: Role.ADMIN, name: 'admin', text: 'also manages users, nodes and approvals' },
]

export const roleName = (r: Role): string => roles.find((x) => x.value === r)?.name ?? 'no role'

export const article = (name: string) => (name === 'admin' ? 'an admin' : `a ${name}`)

export function tokenState(t: Pick<Token, 'revoked' | 'expires'>, now = Date.now()): TokenState {
  if (t.revoked) return 'revoked'
  return (date(t.expires)?.getTime() ?? 0) <= now ? 'expired' : 'valid'
}

export const isValid = (t: Pick<Token, 'revoked' | 'expires'>, now?: number) => tokenState(t, now) === 'valid'

/** The setup token of an address's fragment; empty where there is none. */
export const setupToken = (hash: string) => /^#(lts_[\w-]{43})$/.exec(hash)?.[1] ?? ''

/** Where one came from, as it stands in the login page's address; nothing outside these pages. */
export function safeBack(back: unknown): string {
  return typeof back === 'string' && /^\/(?![/\\])/.test(back) && !back.startsWith('/login') ? back : '/'
}
