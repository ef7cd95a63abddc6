import { create } from '@bufbuild/protobuf'
import { describe, expect, it } from 'vitest'
import { TelemetrySeriesSchema } from '@/gen/linktrial/v1/result_pb'
import { TelemetryStateSchema } from '@/gen/linktrial/v1/telemetry_pb'
import { ageText, positionsOf, positionText, readingText, stateLines, telemetryPanelsOf } from './model'

const series = (node: string, name: string, unit: string, at: number[], value: number[], source = 'radio') =>
  create(TelemetrySeriesSchema, { node, name, unit, at, value, source })

it('tells a position as people do', () => {
  expect(positionText(39.0123456, -77.1)).toBe('39.01235° N, 77.1° W')
  expect(positionText(-1, 2)).toBe('1° S, 2° E')
})

it('tells values with their units', () => {
  expect(readingText({ value: 1234567, unit: 'B' })).toBe('1,234,567 B')
  expect(readingText({ value: -3.25678, unit: 'dB' })).toBe('-3.257 dB')
  expect(readingText({ value: 2, unit: '' })).toBe('2')
})

it('tells ages in whole seconds', () => expect([0.4, 29.7, 75].map(ageText)).toEqual(['0 s', '29 s', '1 min 15 s']))

it('makes latitude and longitude one line', () => {
  const s = create(TelemetryStateSchema, {
    source: 'gps',
    values: [
      { name: 'latitude', value: 39, unit: '°' },
      { name: 'longitude', value: -77, unit: '°' },
      { name: 'position_error', value: 4, unit: 'm' },
    ],
  })
  expect(stateLines(s)).toEqual([
    { name: 'position', text: '39° N, 77° W' },
    { name: 'position error', text: '4 m' },
  ])
})

describe('panels of telemetry', () => {
  const all = [
    series('client', 'snr', 'dB', [-3, -1, 2, 9, 20], [1, 2, 3, 4, 5]),
    series('relay', 'snr', 'dB', [-7], [6]),
    series('client', 'latitude', '°', [-1], [39]),
    series('client', 'longitude', '°', [-1], [-77]),
  ]
  const panels = telemetryPanelsOf(all, 10)
  it('have a line a node, with what held from the start to the end', () => {
    expect(panels).toEqual([
      {
        key: 'radio-snr',
        title: 'Radio: snr',
        unit: 'dB',
        lines: [
          {
            name: 'client',
            step: true,
            points: [
              [0, 2],
              [2, 3],
              [9, 4],
              [10, 4],
            ],
          },
          {
            name: 'relay',
            step: true,
            points: [
              [0, 6],
              [10, 6],
            ],
          },
        ],
      },
    ])
  })
  it('leave the position to words', () =>
    expect(positionsOf(all)).toEqual([{ node: 'client', latitude: 39, longitude: -77 }]))
  it('tell sources apart that know the same metric', () => {
    const both = telemetryPanelsOf(
      [series('client', 'snr', 'dB', [0], [1], 'snmp'), series('client', 'snr', 'dB', [0], [2], 'http')],
      1,
    )
    expect(both[0]!.lines.map((l) => l.name)).toEqual(['client (snmp)', 'client (http)'])
  })
})
