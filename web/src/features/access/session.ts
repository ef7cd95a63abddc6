// The session: who is logged in, what the user may do, and the way to the login
// page and back. Without login everybody may do everything.
import { useLocalStorage } from '@vueuse/core'
import { computed, shallowRef } from 'vue'
import type { Router } from 'vue-router'
import { type WhoAmIResponse } from '@/gen/linktrial/v1/access_pb'
import { access, onLoginLost } from '@/lib/api'
import { type RoleName, roles, roleName, article, safeBack } from './model'

/** What the orchestrator last said of who is here; undefined before its first answer. */
export const me = shallowRef<WhoAmIResponse>()

/** Somebody was logged in, and the orchestrator does not know that session any more. */
export const expired = shallowRef(false)

/** People log in here; false also until the orchestrator has answered. */
export const loginRequired = computed(() => me.value?.loginRequired === true)

/** The name that the orchestrator writes down for whoever is logged in; empty where it asks nobody. */
export const myName = computed(() => me.value?.user ?? '')

/** The name that the record gets where nobody logs in; kept in this browser. */
export const recordName = useLocalStorage('linktrial-who', '')

/** Asks who is here. An orchestrator that does not answer leaves things as they were. */
export async function loadSession(): Promise<void> {
  try {
    const now = await access.whoAmI({})
    if (me.value?.user && now.loginRequired && !now.user) expired.value = true
    else me.value = now
  } catch {
    // The pages say that it does not answer.
  }
}

/** Why whoever is here may not do what takes a role; empty: they may. */
export function mayNot(least: RoleName, person = me.value): string {
  if (!person?.loginRequired) return ''
  const need = roles.find((r) => r.name === least)!
  if (person.role >= need.value) return ''
  return person.user
    ? `${person.user} is ${article(roleName(person.role))}: this takes ${article(least)}`
    : `This takes ${article(least)}`
}

/** Sends those who are not logged in to the login page, and those who are away from it. */
export function guard(router: Router): void {
  onLoginLost(() => {
    if (me.value?.user) expired.value = true
    else void loadSession().then(() => toLogin(router))
  })
  router.beforeEach(async (to, from) => {
    // The first page needs the answer; on the way to others it may come later.
    if (!me.value) await loadSession()
    else if (to.path !== from.path) void loadSession()
    const out = loginRequired.value && !myName.value
    if (out && !to.meta.outside) return { name: 'login', query: to.fullPath === '/' ? {} : { back: to.fullPath } }
    if (!out && to.meta.outside) return safeBack(to.query.back)
    // Nothing else is answered before there is a second factor.
    if (me.value?.secondFactorMissing && to.name !== 'account') return { name: 'account' }
    return true
  })
}

async function toLogin(router: Router): Promise<void> {
  const now = router.currentRoute.value
  if (loginRequired.value && !myName.value && !now.meta.outside)
    await router.replace({ name: 'login', query: { back: now.fullPath } })
}

/**
 * Opens a session, and reports whether it is open: without a code it is not, where the user
 * has a second factor. What goes wrong is thrown, in the orchestrator's words.
 */
export async function logIn(user: string, password: string, code = ''): Promise<boolean> {
  const answer = await access.login({ user, password, code })
  if (answer.codeNeeded) return false
  me.value = await access.whoAmI({})
  expired.value = false
  return true
}

/** Ends the session. The page is loaded anew: nothing that it has shown stays. */
export async function logOut(): Promise<void> {
  await access.logout({})
  window.location.assign('/login')
}
