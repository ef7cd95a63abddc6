import { create } from '@bufbuild/protobuf'
import { expect, it } from 'vitest'
import { CheckSchema, CheckState } from '@/gen/linktrial/v1/fleet_pb'
import { bySeverity, worst } from './checks'

const check = (node: string, kind: string, state: CheckState) => create(CheckSchema, { node, kind, state })

it('puts what failed first', () => {
  const checks = [
    check('b', 'disk', CheckState.OK),
    check('b', 'clock', CheckState.FAILED),
    check('a', 'reach', CheckState.WARNING),
    check('a', 'clock', CheckState.FAILED),
  ]
  expect(bySeverity(checks).map((c) => `${c.node} ${c.kind}`)).toEqual(['a clock', 'b clock', 'a reach', 'b disk'])
  expect(worst(checks)).toBe(CheckState.FAILED)
  expect(worst([])).toBe(CheckState.UNSPECIFIED)
})
