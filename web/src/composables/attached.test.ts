import { create, type MessageInitShape } from '@bufbuild/protobuf'
import { expect, test } from 'vitest'
import { NodeSchema } from '@/gen/linktrial/v1/operator_pb'
import { attachedTo } from './attached'

const node = (n: MessageInitShape<typeof NodeSchema>) => create(NodeSchema, { connected: true, ...n })
const nodes = [
  node({ name: 'real', radio: 'mpu4' }),
  node({ name: 'away', radio: 'mpu4', connected: false }),
  node({ name: 'other', radio: 'prc-152a' }),
  node({ name: 'lab', emulated: true }),
  node({ name: 'virtual', emulated: true, virtual: true }),
]

test('a radio has its connected nodes, and those of a lab that emulates it', () => {
  const names = (radio: string, emulated: string) => attachedTo(radio, nodes, emulated).map((n) => n.name)
  expect(names('mpu4', '')).toEqual(['real'])
  expect(names('mpu4', 'mpu4')).toEqual(['real', 'lab'])
  expect(names('hf-4800', 'mpu4')).toEqual([])
})
