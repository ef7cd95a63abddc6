import { create } from '@bufbuild/protobuf'
import { describe, expect, it } from 'vitest'
import { ChannelSeriesSchema, FlowSeriesSchema, TelemetrySeriesSchema } from '@/gen/linktrial/v1/result_pb'
import { deepPanels, endOf, mergePanels, sequenceLines, valueAt } from './seriesModel'

const flow = create(FlowSeriesSchema, {
  trial: 3,
  attempt: 1,
  side: 'client',
  treatment: 'cubic',
  label: 'CUBIC',
  offsetSeconds: 0.5,
  at: [0.1, 0.2, 0.3],
  sentBytes: [1024, 2048, 4096],
  ackedBytes: [0, 1024, 2048],
  throughput: [Number.NaN, 10240, 10240],
  cwndBytes: [10240, 20480, -1],
  ssthreshBytes: [3e12, 3e12, 20480],
  retransmits: [0, -1, 2],
  more: {
    queue_bytes: { values: [1, 2, 3] },
    window_bytes: { values: [4, 5, 6] },
    mode: { values: [Number.NaN, Number.NaN, Number.NaN] },
  },
})
const channel = create(ChannelSeriesSchema, { from: 'client', to: 'server', at: [0, 0.4], loss: [0, 0.1] })
const panels = deepPanels({
  flows: [flow],
  channels: [channel],
  telemetry: [create(TelemetrySeriesSchema, { node: 'client', name: 'snr_db', at: [0], value: [12] })],
})
const panel = (key: string) => panels.find((p) => p.key === key)

describe('panels of an attempt', () => {
  it('are on the clock of the trial', () =>
    expect(panel('throughput')!.lines[0]!.points.map(([x]) => x)).toEqual([0.6, 0.7, 0.8]))
  it('have gaps where nothing is known, and no window that is no limit', () => {
    expect(panel('window')!.lines.map((l) => [l.name, ...l.points.map(([, y]) => y)])).toEqual([
      ['congestion window', 10, 20, Number.NaN],
      ['slow start threshold', Number.NaN, Number.NaN, 20],
    ])
    expect(panel('events')!.lines[0]).toMatchObject({ name: 'retransmissions', step: true })
    expect(panel('rtt')).toBeUndefined()
  })
  it("have the protocol's own figures by their unit, and none that was never known", () => {
    expect(panel('more-bytes')!.lines.map((l) => l.name)).toEqual(['queue', 'window'])
    expect(panels.some((p) => p.key.includes('mode'))).toBe(false)
  })
  it("hold the channel's state to the end of the trial", () =>
    expect(panel('channel-loss')!.lines[0]).toEqual({
      name: 'client → server',
      step: true,
      points: [
        [0, 0],
        [0.4, 10],
        [0.8, 10],
      ],
    }))
  it('have the telemetry of radios', () =>
    expect(panel('radio-snr_db')).toMatchObject({ title: 'Radio: snr', unit: 'dB', lines: [{ name: 'client' }] }))
  it('end with the flows', () =>
    expect(
      endOf({ flows: [flow], channels: [create(ChannelSeriesSchema, { at: [0, 99] })], telemetry: [] }),
    ).toBeCloseTo(0.8))
})

it('lays finer data into the overview and keeps it around', () => {
  const line = (points: [number, number][]) => [
    { key: 'x', title: 'x', unit: '', lines: [{ name: 'l', step: false, points }] },
  ]
  const merged = mergePanels(
    line([
      [0, 0],
      [1, 1],
      [2, 2],
      [3, 3],
    ]),
    line([
      [0.9, 9],
      [1, 9],
      [1.5, 9],
      [2, 9],
      [2.1, 9],
    ]),
    1,
    2,
  )
  expect(merged[0]!.lines[0]!.points).toEqual([
    [0, 0],
    [1, 9],
    [1.5, 9],
    [2, 9],
    [3, 3],
  ])
  expect(
    mergePanels(
      line([
        [0, 0],
        [1, 1],
      ]),
      line([]),
      0,
      1,
    )[0]!.lines[0]!.points,
  ).toHaveLength(2)
})

it('draws a sequence from what is acknowledged, from the start of the first flow', () => {
  const second = create(FlowSeriesSchema, { ...flow, flow: 1, offsetSeconds: 1.5, ackedBytes: [] })
  const lines = sequenceLines([flow, second, create(FlowSeriesSchema, { ...flow, side: 'server' })])
  expect(lines.map((l) => l.name)).toEqual(['CUBIC, flow 1', 'CUBIC, flow 2'])
  expect(lines[0]!.points).toEqual([
    [0, 0],
    [0.1, 0],
    [0.2, 1024],
    [0.3, 2048],
  ])
  expect(lines[1]!.points[1]).toEqual([1.1, 1024])
})

it.each([
  [true, 1.4, 10],
  [true, 0.5, Number.NaN],
  [true, 9, 30],
  [false, 1.4, 10],
  [false, 1.6, 20],
  [false, 0, 10],
  [false, 9, 30],
])('reads a line (steps: %s) at %d as %d', (step, at, value) =>
  expect(
    valueAt(
      {
        name: '',
        step,
        points: [
          [1, 10],
          [2, 20],
          [3, 30],
        ],
      },
      at,
    ),
  ).toBe(value),
)
