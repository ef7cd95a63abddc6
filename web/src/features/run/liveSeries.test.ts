import { create } from '@bufbuild/protobuf'
import { expect, it } from 'vitest'
import { LiveSamplesSchema } from '@/gen/linktrial/v1/operator_pb'
import { LiveSeries, windowSeconds } from './liveSeries'

const samples = (at: number[], more = {}) =>
  create(LiveSamplesSchema, {
    runId: 'r',
    trial: 1,
    attempt: 1,
    treatment: 'a',
    at,
    bytes: at.map((x) => x * 1000),
    cwndBytes: at.map(() => 100),
    srttMs: at.map(() => 20),
    ...more,
  })

it('turns bytes into throughput over half a second', () => {
  const s = new LiveSeries()
  s.add(samples([0.1, 0.2, 0.3, 0.8], { bytes: [0, 0, 300, 800] }))
  const f = s.flows.get(0)!
  expect(f.rate.map((p) => Math.round(p[1]))).toEqual([0, 1500, 1000])
  expect(f.cwnd).toHaveLength(4)
  expect(f.srttMs).toBe(20)
})

it('takes a sample once, and not what is unknown', () => {
  const s = new LiveSeries()
  s.add(samples([1, 2]))
  s.add(samples([1, 2, 3], { cwndBytes: [Number.NaN, Number.NaN, Number.NaN] }))
  const f = s.flows.get(0)!
  expect(f.at).toEqual([1, 2, 3])
  expect(f.cwnd.map((p) => p[0])).toEqual([1, 2])
})

it('begins anew with every attempt, and holds flows apart', () => {
  const s = new LiveSeries()
  s.add(samples([1]))
  s.add(samples([1], { flow: 1 }), 10)
  expect([...s.flows.keys()]).toEqual([0, 1])
  expect(s.end).toBe(11)
  s.add(samples([0.5], { attempt: 2 }))
  expect([...s.flows.keys()]).toEqual([0])
  expect(s.end).toBe(0.5)
})

it('keeps a window of fixed length', () => {
  const s = new LiveSeries()
  expect(s.range()).toEqual([0, 5])
  s.add(samples([11]))
  expect(s.range()).toEqual([0, 20])
  s.add(samples([0], { attempt: 2 }))
  for (let i = 0; i < 30; i++)
    s.add(
      samples(
        Array.from({ length: 100 }, (_, k) => i * 10 + (k + 1) / 10),
        { attempt: 2 },
      ),
    )
  const f = s.flows.get(0)!
  expect(s.range()).toEqual([240, 300])
  expect(f.at.length).toBeLessThan(windowSeconds * 10 + 100)
  expect(f.at.length).toBeGreaterThan(windowSeconds * 10)
  expect(f.rate[0]![0]).toBeGreaterThan(230)
  expect(f.rate.at(-1)![1]).toBeCloseTo(1000)
})
