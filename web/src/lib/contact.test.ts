import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { Contact, type Outage } from './contact'

beforeEach(() => void vi.useFakeTimers({ now: 1_000_000 }))
afterEach(() => void vi.useRealTimers())

type Answer = { ok: boolean; status: number; says?: string } | 'none'
function contact(answer: () => Answer) {
  const seen: (Outage | undefined)[] = []
  let asked = 0
  const c = new Contact({
    probe: (signal) => {
      asked++
      const a = answer()
      if (a !== 'none') return Promise.resolve({ ...a, text: () => Promise.resolve(a.says ?? '') })
      return new Promise((_, fail) => signal.addEventListener('abort', () => fail(new Error('aborted'))))
    },
    changed: (o) => seen.push(o),
    hidden: () => false,
  })
  return { c, seen, asked: () => asked }
}

it('says within 8 s that nothing answers, since when, and that it is over', async () => {
  let answer: Answer = { ok: true, status: 200 }
  const { c, seen } = contact(() => answer)
  await vi.advanceTimersByTimeAsync(20_000)
  expect(seen).toEqual([])
  c.heard()
  const since = Date.now()
  answer = 'none'
  await vi.advanceTimersByTimeAsync(7_800)
  expect(seen).toEqual([{ since, database: undefined }])
  answer = { ok: false, status: 503 }
  await vi.advanceTimersByTimeAsync(6_000)
  expect(seen.at(-1)).toEqual({ since, database: 'does not answer' })
  answer = { ok: true, status: 200 }
  await vi.advanceTimersByTimeAsync(3_000)
  expect(seen).toHaveLength(3)
  expect(seen.at(-1)).toBeUndefined()
  c.stop()
})

it('says since when a database takes no changes although everything is answered', async () => {
  let answer: Answer = { ok: true, status: 200 }
  const { c, seen } = contact(() => answer)
  const heard = setInterval(() => c.heard(), 500)
  await vi.advanceTimersByTimeAsync(10_000)
  const says = 'the database has no room left on its disk (since 14:59:05 UTC, 3 s): nothing is lost'
  answer = { ok: false, status: 503, says }
  await vi.advanceTimersByTimeAsync(6_000)
  expect(seen).toHaveLength(1)
  expect(seen[0]!.database).toBe('has no room left on its disk')
  expect(Date.now() - seen[0]!.since).toBeGreaterThanOrEqual(3_000)
  answer = { ok: false, status: 503, says: 'the database does not answer (since 14:59:20 UTC, 1 s): nothing is lost' }
  await vi.advanceTimersByTimeAsync(6_000)
  expect(seen.at(-1)).toEqual({ since: seen[0]!.since, database: 'does not answer' })
  answer = { ok: true, status: 200 }
  await vi.advanceTimersByTimeAsync(3_000)
  expect(seen.at(-1)).toBeUndefined()
  clearInterval(heard)
  c.stop()
})

it('asks no more than it must: every answer counts', async () => {
  const { c, asked } = contact(() => ({ ok: true, status: 200 }))
  for (let i = 0; i < 20; i++) {
    c.heard()
    await vi.advanceTimersByTimeAsync(2_000)
  }
  expect(asked(), 'only whether the database takes changes').toBeLessThanOrEqual(8)
  const before = asked()
  const over = c.began()
  for (let i = 0; i < 10; i++) {
    c.heard()
    await vi.advanceTimersByTimeAsync(1_000)
  }
  expect(asked() - before, 'a call waits').toBeGreaterThan(2)
  over()
  c.stop()
})
