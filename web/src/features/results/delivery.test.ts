import { create } from '@bufbuild/protobuf'
import { describe, expect, it } from 'vitest'
import { RunSummarySchema } from '@/gen/linktrial/v1/result_pb'
import { inKilobytes } from '@/lib/number'
import { lookOf } from './figures/ink'
import { deliveryCell, deliveryLine, deliveryRows, horizonText, lastDelivery } from './delivery'

const run = create(RunSummarySchema, {
  treatments: [
    { name: 'gone', missing: 'no such driver' },
    {
      name: 'tcp',
      label: 'TCP CUBIC',
      delivery: {
        trials: 10,
        horizon: 300,
        share: 1,
        shareLow: 0.72,
        shareHigh: 1,
        mean: 114.2,
        meanLow: 90,
        meanHigh: 138.4,
        median: 101,
        medianLow: 80,
        medianHigh: 130,
        goodput: 9000,
        curveTime: [80, 130],
        curveShare: [0.5, 1],
        curveLow: [0.24, 0.72],
        curveHigh: [0.76, 1],
      },
    },
    {
      name: 'haul',
      delivery: {
        trials: 10,
        horizon: 300,
        share: 0.4,
        shareLow: 0.17,
        shareHigh: 0.69,
        mean: 185,
        pairs: 10,
        sooner: -70.8,
        soonerLow: -130,
        soonerHigh: -11.6,
        soonerP: 0.024,
        soonerPHolm: 0.048,
      },
    },
    { name: 'timed', label: 'bounded by a time' },
  ],
})
const rows = deliveryRows(run, [])

describe('times to delivery', () => {
  it('are those of treatments that have some, and the first one that was run is the reference', () => {
    expect(rows.map((r) => [r.label, r.reference])).toEqual([
      ['TCP CUBIC', true],
      ['haul', false],
    ])
    expect(deliveryRows(run, ['tcp']).map((r) => r.label)).toEqual(['haul'])
    expect(horizonText(rows)).toBe('300 s')
  })
  it('have intervals where there are some', () => {
    const [tcp, haul] = rows as [(typeof rows)[0], (typeof rows)[0]]
    expect(deliveryCell(tcp, 'share', inKilobytes)).toEqual({ text: '100 %', small: '72 % – 100 %' })
    expect(deliveryCell(tcp, 'mean', inKilobytes)).toEqual({ text: '114.20', small: '90.00 – 138.40' })
    expect(deliveryCell(tcp, 'median', inKilobytes)).toEqual({ text: '101.00', small: '80.00 – 130.00' })
    expect(deliveryCell(tcp, 'goodput', inKilobytes)).toEqual({ text: '8.79' })
    expect(deliveryCell(tcp, 'sooner', inKilobytes)).toEqual({ text: 'reference' })
    expect(deliveryCell(haul, 'mean', inKilobytes)).toEqual({ text: '185.00', small: undefined })
    expect(deliveryCell(haul, 'median', inKilobytes)).toEqual({ text: '–' })
    expect(deliveryCell(haul, 'goodput', inKilobytes)).toEqual({ text: '–' })
    expect(deliveryCell(haul, 'sooner', inKilobytes)).toEqual({ text: '-70.80', small: '-130.00 – -11.60' })
    expect(deliveryCell(haul, 'p', inKilobytes)).toEqual({ text: '0.024', small: 'Holm 0.048' })
    const open = { ...tcp, d: { ...tcp.d, medianHigh: undefined } }
    expect(deliveryCell(open, 'median', inKilobytes).small).toBe('from 80.00')
  })
})

describe('the share delivered over time', () => {
  const tcp = rows[0]!.d
  const haul = rows[1]!.d
  const look = lookOf(new Map(), 'tcp')
  it('rises from nothing at the start, and stays where it is until the end of the figure', () => {
    expect(deliveryLine(tcp, 150, 'TCP', look, 2).points.map((p) => p.slice(0, 2))).toEqual([
      [0, 0],
      [80, 0.5],
      [130, 1],
      [150, 1],
    ])
    expect(deliveryLine(haul, 150, 'Haul', look, 2).points.map((p) => p.slice(0, 2))).toEqual([
      [0, 0],
      [150, 0],
    ])
  })
  it('has intervals where few lines are', () => {
    expect(deliveryLine(tcp, 150, 'TCP', look, 3).low).toEqual([NaN, 0.24, 0.72, NaN])
    expect(deliveryLine(tcp, 150, 'TCP', look, 4).low).toBeUndefined()
  })
  it('is shown up to the last delivery, or to the horizon', () => {
    expect(lastDelivery([tcp, haul])).toBe(130)
    expect(lastDelivery([haul])).toBe(300)
    expect(lastDelivery([])).toBe(0)
  })
})
