// What there is to tell, in every tab: the newest notifications, those that nobody has seen in this browser, and the
// browser's own notifications. One tab follows the orchestrator and passes on what comes (leader.ts).
import { useLocalStorage } from '@vueuse/core'
import { computed, onScopeDispose, shallowRef } from 'vue'
import type { Router } from 'vue-router'
import { onBack } from '@/composables/contact'
import type { Notification as Told } from '@/gen/linktrial/v1/notification_pb'
import { notifications, operator } from '@/lib/api'
import { Follower } from '@/lib/follower'
import { lead } from './leader'
import { idOf, KNOWN, merged, newest, ownPath, unseenCount } from './model'

const name = 'linktrial-notifications'
/** The page's own calls come first. Milliseconds. */
const startMs = 1_000
/** The orchestrator is asked whether it is there after this time without a notification. Milliseconds. */
const quietMs = 15_000

const known = shallowRef<Told[]>([])
const kept = useLocalStorage(`${name}-seen`, '0')

/** The newest ones, newest first. */
export const latest = computed<readonly Told[]>(() => known.value)
/** The last one that was seen in this browser. */
export const seen = computed(() => idOf(kept.value))
export const unseen = computed(() => unseenCount(known.value, seen.value))
/** Whether a person turned this browser's own notifications on. */
export const browserOn = useLocalStorage(`${name}-browser`, false)

/** All that has come so far counts as seen, in all tabs. */
export function markSeen(): void {
  const last = newest(known.value)
  if (last > seen.value) kept.value = String(last)
}

function add(more: readonly Told[]) {
  known.value = merged(more, known.value).slice(0, KNOWN)
}

/** Shows one with the means of the browser; reports whether it could. */
export function show(n: Pick<Told, 'id' | 'title' | 'text' | 'path'>, router: Pick<Router, 'push'>): boolean {
  try {
    const shown = new window.Notification(n.title, { body: n.text, tag: String(n.id), icon: '/mark.svg' })
    shown.onclick = () => {
      window.focus()
      shown.close()
      const path = ownPath(n.path)
      if (path) void router.push(path)
    }
    return true
  } catch {
    return false // browsers of phones have the constructor, and refuse it
  }
}

/** Follows what happens, as long as the component is there that calls it: the frame of all pages. */
export function useInbox(router: Pick<Router, 'push'>): void {
  known.value = []
  let loaded = false
  const others = typeof BroadcastChannel === 'undefined' ? undefined : new BroadcastChannel(name)
  others?.addEventListener('message', (e: MessageEvent<Told>) => add([e.data]))

  async function load(signal?: AbortSignal) {
    if (loaded) return
    add((await notifications.listNotifications({ limit: KNOWN }, { signal })).notifications)
    loaded = true
    // The store is another one than when they were seen: what comes in it is new again.
    const last = newest(known.value)
    if (seen.value > last) kept.value = String(last)
  }
  async function* open(signal: AbortSignal) {
    await load(signal)
    yield* notifications.watchNotifications({ after: newest(known.value) }, { signal })
  }
  function came(n: Told | undefined) {
    if (!n || known.value.some((k) => k.id === n.id)) return
    add([n])
    others?.postMessage(n)
    if (browserOn.value && window.Notification?.permission === 'granted') show(n, router)
  }
  let follower: Follower<{ notification?: Told }> | undefined
  function work() {
    follower = new Follower({
      open,
      probe: (signal) => operator.listRuns({ limit: 1 }, { signal }),
      event: (m) => came(m.notification),
      link: () => {},
      endless: true,
      quietMs,
    })
    return () => follower?.stop()
  }

  const askAgain = () => {
    follower?.now()
    load().catch(() => {}) // what asks next says why not
  }
  let stop = () => {}
  const start = setTimeout(() => {
    askAgain()
    stop = lead({
      name,
      work,
      locks: navigator.locks,
      visible: () => document.visibilityState === 'visible',
      onVisible(then) {
        document.addEventListener('visibilitychange', then)
        return () => document.removeEventListener('visibilitychange', then)
      },
    })
  }, startMs)
  const away = onBack(askAgain)
  onScopeDispose(() => {
    clearTimeout(start)
    stop()
    away()
    others?.close()
  })
}
