import { create, type MessageInitShape } from '@bufbuild/protobuf'
import { timestampFromDate } from '@bufbuild/protobuf/wkt'
import { expect, test } from 'vitest'
import { GetJoiningResponse_State as State, GetJoiningResponseSchema } from '@/gen/linktrial/v1/join_pb'
import { NodeIdentity_State as Identity, NodeIdentitySchema } from '@/gen/linktrial/v1/enrol_pb'
import { ended, joinCommand, laptops, timeLeft, triesLeft } from './joining'

const at = (s: number) => timestampFromDate(new Date(s * 1000))
const joining = (j: MessageInitShape<typeof GetJoiningResponseSchema>) => create(GetJoiningResponseSchema, j)
const node = (n: MessageInitShape<typeof NodeIdentitySchema>) => create(NodeIdentitySchema, n)

test.each([
  [0, '10 min 0 s'],
  [0.5, '10 min 0 s'],
  [55, '9 min 5 s'],
  [541, '59 s'],
  [599.1, '1 s'],
  [600, ''],
  [700, ''],
])('after %d s there is %s left', (s, left) => {
  expect(timeLeft(joining({ state: State.OPEN, expires: at(600) }), s * 1000)).toBe(left)
})

test('what is closed has no time left', () => {
  expect(timeLeft(joining({ state: State.TRIED, expires: at(600) }), 0)).toBe('')
  expect(timeLeft(joining({ state: State.OPEN }), 0)).toBe('')
})

test('each end of a code is told apart, and an open one has none', () => {
  const ends = Object.values(State)
    .filter((s): s is State => typeof s === 'number')
    .map((s) => ended(s))
  expect(ended(State.OPEN)).toBe('')
  expect(new Set(ends).size).toBe(5)
  expect(ended(State.TRIED)).toContain('five wrong tries')
  expect(ended(State.NONE)).toBe(ended(State.UNSPECIFIED))
})

test('the command names the orchestrator only where it is not found', () => {
  expect(joinCommand('4821-tango-river')).toBe('linktrial join 4821-tango-river')
  expect(joinCommand('4821-tango-river', '10.0.0.1:7700')).toBe(
    'linktrial join 4821-tango-river --address 10.0.0.1:7700',
  )
  expect([triesLeft(5), triesLeft(1)]).toEqual(['5 wrong tries', '1 wrong try'])
})

test('a laptop that joined gets its token, enrols and connects', () => {
  const j = joining({ joined: [{ name: 'b', at: at(100) }] })
  const word = (...n: Parameters<typeof node>[0][]) => laptops(j, n.map(node)).map((l) => `${l.name}: ${l.state.word}`)
  expect(word()).toEqual(['b: enrols'])
  expect(word({ name: 'b', state: Identity.INVITED })).toEqual(['b: enrols'])
  expect(word({ name: 'b', state: Identity.ENROLLED, enrolled: at(101) })).toEqual(['b: enrolled'])
  expect(word({ name: 'b', state: Identity.ENROLLED, enrolled: at(101), connected: true })).toEqual(['b: connected'])
  expect(word({ name: 'b', state: Identity.REVOKED, enrolled: at(101) })).toEqual(['b: revoked'])
  // The laptop whose place it takes is connected still.
  expect(word({ name: 'b', state: Identity.ENROLLED, enrolled: at(99), connected: true })).toEqual(['b: enrols'])
})

test('a laptop that joined twice is listed once, by its newest time', () => {
  const j = joining({
    joined: [
      { name: 'b', at: at(100) },
      { name: 'c', at: at(150) },
      { name: 'b', at: at(200) },
    ],
  })
  const b = node({ name: 'b', state: Identity.ENROLLED, enrolled: at(101) })
  expect(laptops(j, [b]).map((l) => [l.name, l.state.word])).toEqual([
    ['b', 'enrols'],
    ['c', 'enrols'],
  ])
})
