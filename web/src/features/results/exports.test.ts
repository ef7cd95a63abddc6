import { describe, expect, it } from 'vitest'
import { exportName, exportWords } from './exports'

describe('names of exported files', () => {
  it('say campaign, radio, place and format', () =>
    expect(exportName(exportWords(['Spring trial'], ['prc-117g-anw2c'], ['vip-lot', 'vip-lot']), 'trials.csv')).toBe(
      'spring-trial-prc-117g-anw2c-vip-lot-trials.csv',
    ))
  it('count what would make them long', () =>
    expect(exportName(exportWords(['a'], ['x', 'y', 'z'], ['p', 'q']), 'results.json')).toBe(
      'a-3-radios-p-q-results.json',
    ))
  it('are the served name where nothing else is known', () => expect(exportName([], 'results.md')).toBe('results.md'))
})
