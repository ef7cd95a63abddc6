import { describe, expect, it } from 'vitest'
import { downloadAddress, exportName, exportWords } from './exports'

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

describe('the address of a download', () => {
  const choice = { key: 'k', label: 'l', ids: ['aaaa-1', 'bbbb'], words: ['Spring trial', 'vip-lot'] }
  it('has all runs and campaigns, and what the file is called', () =>
    expect(downloadAddress(choice, 'samples-csv', 'cubic')).toBe(
      '/download?format=samples-csv&id=aaaa-1&id=bbbb&reference=cubic&stem=spring-trial-vip-lot',
    ))
  it('has no name that the orchestrator would refuse', () => {
    const stem = (words: string[]) =>
      new URLSearchParams(downloadAddress({ ...choice, words }, 'csv', '').split('?')[1]).get('stem')
    expect(stem([])).toBeNull()
    expect(stem(['x'.repeat(99), 'y'])).toBe('x'.repeat(99))
    expect(stem(['–'])).toBeNull()
  })
})
