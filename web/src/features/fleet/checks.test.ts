import { create } from '@bufbuild/protobuf'
import { expect, it } from 'vitest'
import { CheckSchema, CheckState } from '@/gen/linktrial/v1/fleet_pb'
import { bySeverity, treatmentLines, worst } from './checks'

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

it('says of each treatment whether it works, or where it is blocked', () => {
  const of = (found: string, state: CheckState, remedy = '') =>
    create(CheckSchema, { node: 'c', kind: 'treatment', state, found, remedy })
  const lines = treatmentLines([
    check('c', 'clock', CheckState.OK),
    of('tcp: works: 16 KiB in 250 ms over TCP port 5001', CheckState.OK),
    of(
      'quic: blocked, before a connection was made: 9 packets to UDP port 5003 left c, none arrived at s',
      CheckState.FAILED,
      'see the firewall',
    ),
    of('udt: works, and is slow: 8 KiB of 16 KiB were acknowledged', CheckState.WARNING),
    of('sctp: not supported: the driver on s refuses: no module', CheckState.FAILED),
    of('haul: the run of another plan has begun', CheckState.UNKNOWN),
  ])
  expect(lines.map((l) => [l.name, l.verdict, l.found])).toEqual([
    ['tcp', 'works', '16 KiB in 250 ms over TCP port 5001'],
    ['quic', 'blocked', 'before a connection was made: 9 packets to UDP port 5003 left c, none arrived at s'],
    ['udt', 'works, and is slow', '8 KiB of 16 KiB were acknowledged'],
    ['sctp', 'not supported', 'the driver on s refuses: no module'],
    ['haul', '', 'the run of another plan has begun'],
  ])
  expect(lines[1]!.remedy).toBe('see the firewall')
})
