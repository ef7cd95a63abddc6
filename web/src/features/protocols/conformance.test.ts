import { expect, test } from 'vitest'
import { create } from '@bufbuild/protobuf'
import { ConformanceResultSchema } from '@/gen/linktrial/v1/lab_pb'
import { timeLeft } from './conformance'

const last = create(ConformanceResultSchema, {
  checks: [
    { name: 'manifest', seconds: 1 },
    { name: 'transfer', seconds: 9 },
    { name: 'outage', seconds: 80 },
    { name: 'end', seconds: 10 },
  ],
})
const ended = (...names: string[]) => names.map((name) => ({ name, seconds: 2 }))

test('the time left is that of the open checks, at the pace of those that have ended', () => {
  expect(timeLeft(last, ended('manifest', 'transfer'), 4, 10_000)).toBe(90_000)
  expect(timeLeft(last, ended('manifest', 'transfer'), 4, 20_000)).toBe(180_000)
  expect(timeLeft(last, ended('manifest', 'transfer', 'outage', 'end'), 4, 100_000)).toBe(0)
})

test('no time is better than a wrong one', () => {
  expect(timeLeft(undefined, ended('manifest', 'transfer'), 4, 10_000)).toBeUndefined()
  expect(timeLeft(last, [], 4, 0)).toBeUndefined()
  // Nothing can be told from a second.
  expect(timeLeft(last, ended('manifest'), 4, 10_000)).toBeUndefined()
  // The last suite had other checks.
  expect(timeLeft(last, ended('manifest', 'transfer'), 5, 10_000)).toBeUndefined()
  expect(timeLeft(last, ended('manifest', 'new'), 4, 10_000)).toBeUndefined()
})
