import { expect, test } from 'vitest'
import { create } from '@bufbuild/protobuf'
import { CheckState, GetPreflightResponseSchema } from '@/gen/linktrial/v1/fleet_pb'
import { verdict } from './planPreflight'

const of = (...states: CheckState[]) =>
  create(GetPreflightResponseSchema, {
    checks: states.map((state, i) => ({
      node: `n${i}`,
      peer: i ? 'server' : '',
      kind: 'clock',
      state,
      found: '2 s ahead',
      remedy: i ? '' : 'set it',
    })),
  })

test('a warning does not speak against a start, a failure does', () => {
  expect(verdict(of(CheckState.OK, CheckState.WARNING, CheckState.UNKNOWN))).toBe('')
  expect(verdict(of(CheckState.FAILED, CheckState.OK))).toBe('n0, clock: 2 s ahead. What to do: set it.')
  expect(verdict(of(CheckState.OK, CheckState.FAILED, CheckState.FAILED))).toBe(
    'n1 → server, clock: 2 s ahead. The page Fleet shows this and 1 more.',
  )
})
