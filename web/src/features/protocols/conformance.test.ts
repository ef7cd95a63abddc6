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
const ended = (...names: string[]) => names.map((name) => ({ name }))

test('the time left is that of the other checks in the last whole suite', () => {
  expect(timeLeft(last, [], 4)).toBe(100)
  expect(timeLeft(last, ended('manifest', 'transfer'), 4)).toBe(90)
  expect(timeLeft(last, ended('manifest', 'transfer', 'outage', 'end'), 4)).toBe(0)
})

test('no time is better than a wrong one', () => {
  expect(timeLeft(undefined, ended('manifest', 'transfer'), 4)).toBeUndefined()
  // The last suite had other checks.
  expect(timeLeft(last, ended('manifest', 'transfer'), 5)).toBeUndefined()
  expect(timeLeft(last, ended('manifest', 'new'), 4)).toBeUndefined()
})
