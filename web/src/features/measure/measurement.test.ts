import { create } from '@bufbuild/protobuf'
import { expect, test } from 'vitest'
import { MeasuredValueSchema, MeasurementPlanSchema, MeasurementSchema } from '@/gen/linktrial/v1/measure_pb'
import { announcement, listed, valueRows } from './measurement'

test('both ways of a metric are one row, with each note once', () => {
  const value = (metric: string, way: string, text: string, note: string) =>
    create(MeasuredValueSchema, { group: 'capacity', metric, way, text, note })
  expect(
    valueRows([
      value('capacity', 'client → server', '1990 kbit/s', 'cut short'),
      value('loss', 'client → server', '0 %', '0 of 160 packets'),
      value('capacity', 'server → client', '1950 kbit/s', 'cut short'),
      value('loss', 'server → client', '1 %', '2 of 160 packets'),
    ]),
  ).toEqual([
    { group: 'capacity', metric: 'capacity', there: '1990 kbit/s', back: '1950 kbit/s', note: 'cut short' },
    { group: 'capacity', metric: 'loss', there: '0 %', back: '1 %', note: '0 of 160 packets; 2 of 160 packets' },
  ])
})

test('the time is said beforehand, and that a search comes first', () => {
  expect(announcement(create(MeasurementPlanSchema, { boundSeconds: 116 }))).toBe('At most 1 min 56 s.')
  expect(announcement(create(MeasurementPlanSchema, { boundSeconds: 590, restFollows: true }))).toContain(
    'the capacity is searched first',
  )
})

test('a search is not listed beside its rest', () => {
  const parts = ['measure-rest', 'measure-search', 'measure', 'measure-search']
  const all = parts.map((part, i) => create(MeasurementSchema, { campaignId: `c${i}`, part }))
  expect(listed(all).map((m) => m.campaignId)).toEqual(['c0', 'c2', 'c3'])
})
