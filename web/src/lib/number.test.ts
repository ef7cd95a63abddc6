import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { decimal, KB, percent, rate, rateIn, rateUnit, rateUnitOf } from './number'

// The cases of the command line and of exported tables.
const cases = JSON.parse(readFileSync('../orchestrator/report/wording/testdata/numbers.json', 'utf8')) as {
  numbers: [number | null, string][]
  percents: [number, number, string][]
  rates: [number, string][]
}

it('has the cases', () => expect(cases.numbers.length).toBeGreaterThan(30))
it.each(cases.numbers)('writes %d as %s', (x, text) => expect(decimal(x ?? undefined)).toBe(text))
it.each(cases.percents)('writes the share %d with %d decimals as %s', (x, n, text) => expect(percent(x, n)).toBe(text))
it.each(cases.rates)('writes %d KB/s as %s', (x, text) => expect(rate(x * KB)).toBe(text))

it('has one unit for all throughputs of a table', () => {
  const unit = rateUnitOf([undefined, 300 * KB, 7.45])
  expect([unit.name, rateIn(unit, 300 * KB), rateIn(unit, 7.45), rateIn(unit, undefined)]).toEqual([
    'KB/s',
    '300.00',
    '0.00728',
    '–',
  ])
  expect(rateUnit(0).name).toBe('KB/s')
})
