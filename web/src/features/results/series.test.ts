import { create } from '@bufbuild/protobuf'
import { describe, expect, it } from 'vitest'
import { ChannelSeriesSchema, FlowSeriesSchema, TelemetrySeriesSchema } from '@/gen/linktrial/v1/result_pb'
import { deepPanels, endOf, sequenceLines } from './series'

const flow = create(FlowSeriesSchema, {
  trial: 3,
  attempt: 1,
  side: 'client',
  treatment: 'cubic',
  label: 'CUBIC',
  offsetSeconds: 0.5,
  at: [0.1, 0.2, 0.3],
  columns: [
    { name: 'throughput', unit: 'B/s', kind: 'gauge', values: [Number.NaN, 10240, 10240] },
    { name: 'sent_bytes', unit: 'B', kind: 'cumulative', values: [1024, 2048, 4096] },
    { name: 'acked_bytes', unit: 'B', kind: 'cumulative', values: [0, 1024, 2048] },
    { name: 'cwnd_bytes', unit: 'B', kind: 'gauge', values: [10240, 20480, Number.NaN] },
    { name: 'ssthresh_bytes', unit: 'B', kind: 'gauge', values: [3e12, 3e12, 20480] },
    { name: 'retransmitted_bytes', unit: 'B', kind: 'cumulative', values: [0, 0, 1024] },
    { name: 'retransmits', unit: 'count', kind: 'counter', values: [0, Number.NaN, 2] },
    { name: 'ecn_marks', unit: 'count', kind: 'counter', values: [0, 1, 1] },
    { name: 'window_bytes', values: [4, 5, 6] },
    { name: 'queue_bytes', values: [1, 2, 3] },
    { name: 'mode', values: [Number.NaN, Number.NaN, Number.NaN] },
  ],
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
    expect([panel('events')!.whole, panel('window')!.whole]).toEqual([true, false])
    expect(panel('rtt')).toBeUndefined()
    expect(panel('bytes')!.lines.map((l) => l.name)).toEqual(['sent', 'acknowledged', 'sent again'])
  })
  it("have the protocol's own metrics by their unit, and none that was never known", () => {
    expect(panel('more-KB')!.lines.map((l) => l.name)).toEqual(['queue', 'window'])
    expect(panels.some((p) => p.key.includes('mode'))).toBe(false)
    const own = create(FlowSeriesSchema, {
      side: 'client',
      at: [0, 1],
      columns: [{ name: 'sack_timer_us', values: [1_500_000, 200_000] }],
    })
    const [mine] = deepPanels({ flows: [own], channels: [], telemetry: [] })
    expect(mine).toMatchObject({ key: 'more-ms', unit: 'ms' })
    expect(mine!.lines[0]!.points.map(([, y]) => y)).toEqual([1500, 200])
  })
  it('have a metric of the contract that no panel here knows', () =>
    expect(panel('more-ecn_marks')).toMatchObject({ title: 'ECN marks', lines: [{ name: 'ECN marks', step: true }] }))
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

it('draws a sequence from what is acknowledged, from the start of the first flow', () => {
  const second = create(FlowSeriesSchema, {
    ...flow,
    flow: 1,
    offsetSeconds: 1.5,
    columns: flow.columns.filter((c) => c.name !== 'acked_bytes'),
  })
  const lines = sequenceLines(
    [
      flow,
      second,
      create(FlowSeriesSchema, { ...flow, side: 'server' }),
      create(FlowSeriesSchema, { ...flow, flow: 2, treatment: 'voice' }), // a probe beside
      create(FlowSeriesSchema, { ...flow, trial: 4, treatment: 'voice' }), // and alone
    ],
    new Map([[3, { name: 'cubic', label: 'CUBIC' }]]),
    new Set(['voice']),
  )
  expect(lines.map((l) => l.name)).toEqual(['CUBIC, flow 0', 'CUBIC, flow 1'])
  expect(lines[0]!.points).toEqual([
    [0, 0],
    [0.1, 0],
    [0.2, 1024],
    [0.3, 2048],
  ])
  expect(lines[1]!.points[1]).toEqual([1.1, 1024])
})

it('colours the flows of a mix as the mix, and names both', () => {
  const of = new Map([[3, { name: 'both', label: 'TCP + Haul' }]])
  const lines = sequenceLines([flow, create(FlowSeriesSchema, { ...flow, flow: 1 })], of, new Set())
  expect(lines.map((l) => [l.name, l.treatment])).toEqual([
    ['TCP + Haul, CUBIC, flow 0', 'both'],
    ['TCP + Haul, CUBIC, flow 1', 'both'],
  ])
})
