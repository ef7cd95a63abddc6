import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { toast, useToasts } from './toasts'

const { toasts, close, hold, release } = useToasts()
beforeEach(() => vi.useFakeTimers())
afterEach(() => {
  for (const t of toasts.value) close(t.id)
  vi.useRealTimers()
})
const texts = () => toasts.value.map((t) => t.text)

test('messages leave by themselves, errors later', () => {
  toast.success('saved')
  toast.error('refused')
  vi.advanceTimersByTime(6_000)
  expect(texts()).toEqual(['refused'])
  vi.advanceTimersByTime(4_000)
  expect(texts()).toEqual([])
})
test('a held message stays until some time after it is released', () => {
  toast.success('saved')
  hold(toasts.value[0]!.id)
  vi.advanceTimersByTime(60_000)
  expect(texts()).toEqual(['saved'])
  release(toasts.value[0]!.id)
  vi.advanceTimersByTime(6_000)
  expect(texts()).toEqual([])
})
