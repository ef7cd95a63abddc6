import { flushPromises } from '@vue/test-utils'
import { expect, test } from 'vitest'
import { lead } from './leader'

/** Locks as browsers have them: one holder, the others wait in order. */
function locks() {
  let last: Promise<unknown> = Promise.resolve()
  const request = async (_: string, o: { signal?: AbortSignal }, hold: () => unknown) => {
    const before = last
    let free = () => {}
    last = new Promise<void>((done) => (free = done))
    try {
      await Promise.race([
        before,
        new Promise((_, fail) => o.signal?.addEventListener('abort', () => fail(new Error('aborted')))),
      ])
      return await hold()
    } finally {
      void before.then(free)
    }
  }
  return { request } as unknown as Pick<LockManager, 'request'>
}

function tabs(shared?: Pick<LockManager, 'request'>) {
  const working = new Set<string>()
  const open = (name: string) => {
    let seen = true
    let changed = () => {}
    const stop = lead({
      name: 'test',
      locks: shared,
      work: () => {
        working.add(name)
        return () => working.delete(name)
      },
      visible: () => seen,
      onVisible(then) {
        changed = then
        return () => (changed = () => {})
      },
    })
    return {
      stop,
      turn(on: boolean) {
        seen = on
        changed()
      },
    }
  }
  return { open, working: () => [...working] }
}

test('of several tabs one works, and the next one when it is closed', async () => {
  const t = tabs(locks())
  const [a, b, c] = ['a', 'b', 'c'].map(t.open)
  await flushPromises()
  expect(t.working()).toEqual(['a'])
  b!.stop()
  a!.stop()
  await flushPromises()
  expect(t.working()).toEqual(['c'])
  c!.stop()
  await flushPromises()
  expect(t.working()).toEqual([])
})

test('without locks those tabs work that can be seen', () => {
  const t = tabs()
  const a = t.open('a')
  expect(t.working()).toEqual(['a'])
  a.turn(false)
  expect(t.working()).toEqual([])
  a.turn(true)
  a.turn(true)
  expect(t.working()).toEqual(['a'])
  a.stop()
  a.turn(true)
  expect(t.working()).toEqual([])
})
