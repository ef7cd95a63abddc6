import { create } from '@bufbuild/protobuf'
import { flushPromises } from '@vue/test-utils'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { effectScope } from 'vue'
import { type Notification as Told, NotificationSchema } from '@/gen/linktrial/v1/notification_pb'

const api = vi.hoisted(() => ({
  stored: [] as unknown[],
  listFails: false,
  watched: [] as { after: bigint; tell: (n: unknown) => void; cut: () => void }[],
}))
vi.mock('@/composables/contact', () => ({ onBack: () => () => {} }))
vi.mock('@/lib/api', () => ({
  operator: { listRuns: async () => ({}) },
  notifications: {
    async listNotifications() {
      if (api.listFails) throw new Error('does not answer')
      return { notifications: api.stored }
    },
    async *watchNotifications({ after }: { after: bigint }, { signal }: { signal: AbortSignal }) {
      const queue: unknown[] = []
      let wake = () => {}
      let broken = false
      api.watched.push({
        after,
        tell: (n) => (queue.push(n), wake()),
        cut: () => ((broken = true), wake()),
      })
      signal.addEventListener('abort', () => ((broken = true), wake()))
      for (;;) {
        while (queue.length) yield { notification: queue.shift() }
        if (broken) throw new Error('gone')
        await new Promise<void>((done) => (wake = done))
      }
    },
  },
}))
const { browserOn, latest, markSeen, seen, show, unseen, useInbox } = await import('./inbox')

const told = (id: number, path = `/runs/r${id}`) =>
  create(NotificationSchema, { id: BigInt(id), kind: 'run-ended', title: `Run ${id}`, text: 'It has ended.', path })
const push = vi.fn()
let shown: { title: string; tag?: string; body?: string; onclick?: () => void; close(): void }[]
let posted: Told[]
let scope: ReturnType<typeof effectScope>
class FakeNotification {
  static permission = 'granted'
  onclick?: () => void
  tag?: string
  body?: string
  constructor(
    readonly title: string,
    o: { tag?: string; body?: string },
  ) {
    Object.assign(this, o)
    shown.push(this)
  }
  close() {}
}
/** As another tab would: the last one that was seen. */
function keep(newValue: string) {
  const key = 'linktrial-notifications-seen'
  localStorage.setItem(key, newValue)
  window.dispatchEvent(new StorageEvent('storage', { key, newValue, storageArea: localStorage }))
}
async function begin() {
  scope = effectScope()
  scope.run(() => useInbox({ push }))
  await vi.advanceTimersByTimeAsync(1_000)
}

beforeEach(async () => {
  vi.useFakeTimers()
  shown = []
  posted = []
  api.stored = []
  api.watched = []
  api.listFails = false
  push.mockReset()
  FakeNotification.permission = 'granted'
  browserOn.value = true
  keep('0')
  vi.stubGlobal('Notification', FakeNotification)
  vi.stubGlobal(
    'BroadcastChannel',
    class {
      postMessage = (n: Told) => posted.push(n)
      addEventListener = () => {}
      close = () => {}
    },
  )
  await vi.advanceTimersByTimeAsync(0)
})
afterEach(async () => {
  scope.stop()
  await flushPromises()
  vi.unstubAllGlobals()
  vi.useRealTimers()
})

test('what happened before is counted and not shown; what comes is shown once and passed on', async () => {
  api.stored = [told(7), told(6)]
  await begin()
  expect(unseen.value).toBe(2)
  expect(shown).toEqual([])
  expect(api.watched.map((w) => w.after)).toEqual([7n])
  api.watched[0]!.tell(told(8))
  api.watched[0]!.tell(told(8))
  await vi.advanceTimersByTimeAsync(0)
  expect(shown.map((s) => [s.title, s.tag, s.body])).toEqual([['Run 8', '8', 'It has ended.']])
  expect(posted.map((n) => n.id)).toEqual([8n])
  expect(latest.value.map((n) => Number(n.id))).toEqual([8, 7, 6])
  expect(unseen.value).toBe(3)
  markSeen()
  expect([unseen.value, seen.value]).toEqual([0, 8n])
})

test('a stream that broke goes on after the last one', async () => {
  api.stored = [told(7)]
  await begin()
  api.watched[0]!.tell(told(9))
  await vi.advanceTimersByTimeAsync(0)
  api.watched[0]!.cut()
  await vi.advanceTimersByTimeAsync(1_000)
  expect(api.watched.map((w) => w.after)).toEqual([7n, 9n])
})

test('an orchestrator that does not answer at first is asked again, and old ones are still not shown', async () => {
  api.listFails = true
  await begin()
  expect(api.watched).toEqual([])
  api.listFails = false
  api.stored = [told(3)]
  await vi.advanceTimersByTimeAsync(2_000)
  expect(api.watched.map((w) => w.after)).toEqual([3n])
  expect([unseen.value, shown.length]).toEqual([1, 0])
})

test.each([
  ['turned off', () => (browserOn.value = false)],
  ['without permission', () => (FakeNotification.permission = 'denied')],
])('%s only the bell counts', async (_, set) => {
  set()
  await begin()
  api.watched[0]!.tell(told(1))
  await vi.advanceTimersByTimeAsync(0)
  expect([shown.length, unseen.value]).toEqual([0, 1])
})

test('a click leads to the page of these pages alone', () => {
  scope = effectScope()
  window.focus = vi.fn()
  show(told(1, '/runs/abcd'), { push })
  show(told(2, 'https://elsewhere.example/'), { push })
  for (const s of shown) s.onclick!()
  expect(push.mock.calls).toEqual([['/runs/abcd']])
  expect(window.focus).toHaveBeenCalledTimes(2)
})

test('of another store nothing counts as seen that has not come yet', async () => {
  keep('500')
  await vi.advanceTimersByTimeAsync(0)
  expect(seen.value).toBe(500n)
  api.stored = [told(2)]
  await begin()
  api.watched[0]!.tell(told(3))
  await vi.advanceTimersByTimeAsync(0)
  expect([seen.value, unseen.value]).toEqual([2n, 1])
})
