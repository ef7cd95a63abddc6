import { create, type MessageInitShape } from '@bufbuild/protobuf'
import { timestampFromDate } from '@bufbuild/protobuf/wkt'
import { expect, test } from 'vitest'
import { NodeSchema, RunSchema } from '@/gen/linktrial/v1/operator_pb'
import { attachedTo, radioInUse } from './attached'

const node = (n: MessageInitShape<typeof NodeSchema>) => create(NodeSchema, { connected: true, ...n })
const run = (radio: string, more: MessageInitShape<typeof RunSchema> = {}) =>
  create(RunSchema, {
    radio,
    place: 'emulated, real time',
    started: timestampFromDate(new Date(0)),
    nodes: ['lab'],
    ...more,
  })
const nodes = [
  node({ name: 'real', radio: 'mpu4' }),
  node({ name: 'away', radio: 'mpu4', connected: false }),
  node({ name: 'other', radio: 'prc-152a' }),
  node({ name: 'lab', emulated: true }),
  node({ name: 'virtual', emulated: true, virtual: true }),
]

test('a radio has its connected nodes, and emulated ones of the newest run or of their lab', () => {
  const names = (radio: string, lab: string, ...runs: ReturnType<typeof run>[]) =>
    attachedTo(radio, nodes, runs, lab).map((n) => n.name)
  expect(names('mpu4', '')).toEqual(['real'])
  expect(names('mpu4', 'mpu4')).toEqual(['real', 'lab'])
  expect(names('hf-4800', 'mpu4')).toEqual([])
  expect(names('hf-4800', 'mpu4', run('hf-4800'), run('mpu4'))).toEqual(['lab'])
  expect(names('mpu4', 'mpu4', run('hf-4800'))).toEqual(['real'])
  // Not yet begun, somewhere else, or in virtual time.
  expect(
    names(
      'hf-4800',
      'mpu4',
      run('hf-4800', { started: undefined }),
      run('hf-4800', { nodes: ['x'] }),
      run('hf-4800', { place: 'emulated, virtual time' }),
    ),
  ).toEqual([])
})

test('the page of radios opens with what a connected node has', () => {
  expect(radioInUse(nodes, [], '')).toBe('mpu4')
  expect(radioInUse(nodes.slice(1), [], '')).toBe('prc-152a')
  expect(radioInUse(nodes.slice(3), [], 'hf-4800')).toBe('hf-4800')
  expect(radioInUse(nodes.slice(3), [run('mpu4')], 'hf-4800')).toBe('mpu4')
  expect(radioInUse(nodes.slice(3), [], '')).toBeUndefined()
  expect(radioInUse([nodes[1]!, nodes[4]!], [run('mpu4')], 'mpu4')).toBeUndefined()
})
