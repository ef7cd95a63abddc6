import { expect, it } from 'vitest'
import { sheetView } from './sheet'

it('reads matrix and flow starts from a run sheet', () => {
  const bytes = new TextEncoder().encode(
    JSON.stringify({
      cell: { group: 'g', label: 'loss 0.1' },
      radio: { title: 'MPU4' },
      topology: { title: 'VIP Lot' },
      treatments: [
        { name: 'a', label: 'A' },
        { name: 'b', label: '', missing: 'not built' },
      ],
      mixes: [{ name: 'm', label: 'Mix' }],
      trials: [
        { index: 0, iteration: 1, treatment: 'm', flows: [{ size_bytes: 10 }, { start_ns: 1.5e9, size_bytes: 5 }] },
        { index: 1, iteration: 1, treatment: 'a', flows: [{ start_ns: 1e9, duration_ns: 2e9, size_bytes: 1e9 }] },
        { index: 2, iteration: 2, treatment: 'a', flows: [{}] },
      ],
    }),
  )
  const v = sheetView(bytes)
  expect(v.columns.map((c) => [c.label, c.missing])).toEqual([
    ['A', ''],
    ['b', 'not built'],
    ['Mix', ''],
  ])
  expect(v.rows).toEqual([
    { iteration: 1, trials: [1, undefined, 0] },
    { iteration: 2, trials: [2, undefined, undefined] },
  ])
  expect(v.settings).toBe('g · loss 0.1')
  expect([...v.durations]).toEqual([[1, 3]])
  expect([...v.offsets]).toEqual([
    ['0 1', 1.5],
    ['1 0', 1],
  ])
})

it('reads trials that have probes alone', () => {
  const voice = { treatment: 'voice', duration_ns: 20e9 }
  const bytes = new TextEncoder().encode(
    JSON.stringify({
      cell: {},
      radio: {},
      topology: {},
      treatments: [{ name: 'voice', label: 'Voice' }],
      trials: [
        { index: 0, iteration: 1, treatment: 'voice', flows: null, probes: [voice, { ...voice, duration_ns: 5e9 }] },
        { index: 1, iteration: 2, treatment: 'voice', flows: [] },
      ],
    }),
  )
  const v = sheetView(bytes)
  expect(v.rows.map((r) => r.trials)).toEqual([[0], [1]])
  expect([...v.durations]).toEqual([[0, 20]])
  expect([...v.probeTrials]).toEqual([0, 1])
})
