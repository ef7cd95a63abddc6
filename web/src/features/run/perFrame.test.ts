import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { perFrame } from './perFrame'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

function taken() {
  const batches: number[][] = []
  return { batches, queue: perFrame<number>((b) => batches.push(b)) }
}

it('hands over once a frame what has come since the last one', () => {
  const { batches, queue } = taken()
  queue.add(1)
  queue.add(2)
  expect(batches).toEqual([])
  vi.advanceTimersToNextFrame()
  queue.add(3)
  vi.advanceTimersToNextFrame()
  vi.advanceTimersByTime(10_000)
  expect(batches).toEqual([[1, 2], [3]])
})

it('hands over at once when it is told to, and not again', () => {
  const { batches, queue } = taken()
  queue.add(1)
  queue.flush()
  queue.flush()
  vi.advanceTimersByTime(10_000)
  expect(batches).toEqual([[1]])
})

it('hands over without frames, too: a page out of sight has none', () => {
  vi.spyOn(globalThis, 'requestAnimationFrame').mockReturnValue(1)
  const { batches, queue } = taken()
  queue.add(1)
  vi.advanceTimersByTime(10_000)
  expect(batches).toEqual([[1]])
})

it('hands over nothing once it is stopped', () => {
  const { batches, queue } = taken()
  queue.add(1)
  queue.stop()
  vi.advanceTimersByTime(10_000)
  expect(batches).toEqual([])
})
