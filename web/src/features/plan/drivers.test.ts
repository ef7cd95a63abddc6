import { create } from '@bufbuild/protobuf'
import { expect, it } from 'vitest'
import { NodeSchema } from '@/gen/linktrial/v1/operator_pb'
import { choicesOf, expects, type DriverOption } from './drivers'

const congestion: DriverOption = { name: 'congestion', type: 'string', help: '', from_node: true }
const node = (name: string, role: string, choices: string) =>
  create(NodeSchema, { name, role, drivers: [{ name: 'tcp', choices: { congestion: choices } }] })

it('offers what the ends have, and says which lacks it', () => {
  const nodes = [node('a', 'client', 'bbr,cubic'), node('b', 'server', 'cubic'), node('r', 'relay', 'veno')]
  expect(choicesOf(congestion, 'tcp', nodes)).toEqual([
    { value: 'bbr', lacking: ['b'] },
    { value: 'cubic', lacking: [] },
  ])
})

it('falls back on this machine, and on the closed list', () => {
  expect(choicesOf(congestion, 'tcp', [], { congestion: 'reno, cubic' }).map((c) => c.value)).toEqual(['cubic', 'reno'])
  expect(choicesOf({ ...congestion, choices: ['x'] }, 'tcp', []).map((c) => c.value)).toEqual(['x'])
  expect(choicesOf({ name: 'mss', type: 'size', help: '' }, 'tcp', [])).toEqual([])
})

it('says what it expects in units', () => {
  expect(expects({ name: 'a', type: 'size', help: '', min: 4096, max: 512 << 20 })).toBe(
    'a size such as 64 KiB, 4 KiB to 512 MiB',
  )
  expect(expects({ name: 'a', type: 'duration', help: '', min: 5, max: 120000 })).toBe(
    'a time such as 200ms, 5ms to 120s',
  )
  expect(expects({ name: 'a', type: 'int', help: '', min: 1 })).toBe('a whole number, 1 or more')
  expect(expects({ name: 'a', type: 'string', help: '' })).toBe('')
})
