import { create } from '@bufbuild/protobuf'
import { expect, it } from 'vitest'
import { ExplainPlanResponseSchema } from '@/gen/linktrial/v1/operator_pb'
import { orderOf, runTitles } from './order'

const sheet = {
  cell: { radio: 'mpu4', topology: 'vip-lot', size_bytes: 262144, label: 'loss 0.1' },
  treatments: [
    { name: 'a', label: 'A' },
    { name: 'b', label: '' },
    { name: 'gone', label: 'Gone', missing: 'not built' },
    { name: 'part', label: 'Part' },
  ],
  mixes: [{ name: 'm', label: 'Mix' }],
  trials: [
    { iteration: 1, treatment: 'a' },
    { iteration: 1, treatment: 'b' },
    { iteration: 1, treatment: 'm' },
    { iteration: 2, treatment: 'm' },
    { iteration: 2, treatment: 'a' },
    { iteration: 2, treatment: 'b' },
  ],
}
const answer = create(ExplainPlanResponseSchema, {
  sheets: [
    { sheet: new TextEncoder().encode(JSON.stringify(sheet)), estimatedSeconds: 30, trialSeconds: [1, 2, 3, 4, 5, 6] },
  ],
  estimatedSeconds: 30,
})

it('lays a run out as iterations by treatments', () => {
  const o = orderOf(answer, 0)!
  expect(o.columns.map((c) => c.label)).toEqual(['A', 'b', 'Gone', 'Mix'])
  expect(o.rows.map((r) => r.cells.map((c) => c?.place))).toEqual([
    [1, 2, undefined, 3],
    [2, 3, undefined, 1],
  ])
  expect(o.rows[1]).toMatchObject({ iteration: 2, seconds: 15 })
  expect(o.rows[1]!.cells[3]).toEqual({ place: 1, seconds: 4 })
  expect(orderOf(answer, 1)).toBeUndefined()
})

it('names runs', () => {
  expect(runTitles(answer)).toEqual(['mpu4 · vip-lot · 256 KiB · loss 0.1'])
  expect(runTitles(answer, 0)).toEqual(['run 1'])
})
