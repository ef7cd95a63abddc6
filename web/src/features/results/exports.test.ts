import { describe, expect, it } from 'vitest'
import { downloadAddress, exportChoices, exportName, exportWords } from './exports'
import { summaryOf } from './fixture'

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
  const choice = { key: 'k', label: 'l', ids: ['aaaa-1', 'bbbb'], words: ['Spring trial', 'vip-lot'], leaveOut: [] }
  it('has all runs and campaigns, and what the file is called', () =>
    expect(downloadAddress(choice, 'samples-csv', 'cubic')).toBe(
      '/download?format=samples-csv&id=aaaa-1&id=bbbb&reference=cubic&stem=spring-trial-vip-lot',
    ))
  it('names what is left out', () =>
    expect(downloadAddress({ ...choice, leaveOut: [{ name: 'udt', label: 'UDT' }] }, 'csv', '')).toContain(
      '&leave-out=udt&',
    ))
  it('has no name that the orchestrator would refuse', () => {
    const stem = (words: string[]) =>
      new URLSearchParams(downloadAddress({ ...choice, words }, 'csv', '').split('?')[1]).get('stem')
    expect(stem([])).toBeNull()
    expect(stem(['x'.repeat(99), 'y'])).toBe('x'.repeat(99))
    expect(stem(['–'])).toBeNull()
  })
})

describe('what there is to save', () => {
  const runs = [
    summaryOf({ id: 'c1-1', treatments: ['cubic', 'udt'] }),
    summaryOf({ id: 'c1-2', topology: 't2', treatments: ['cubic'] }),
  ]
  const choices = (of: Partial<Parameters<typeof exportChoices>[0]>) =>
    exportChoices({
      all: runs,
      shown: runs,
      hidden: [],
      ids: ['c1'],
      marks: new Map([['c1', '']]),
      nameOf: () => 'Spring',
      ...of,
    })
  it('is the whole campaign and each run where nothing is filtered', () =>
    expect(choices({}).map((c) => c.key)).toEqual(['c1', 'c1-1', 'c1-2']))
  it('begins with what is shown, without hidden treatments, and says so in its name', () => {
    const [first, whole] = choices({ hidden: ['udt'] })
    expect(first).toMatchObject({ key: 'shown', ids: ['c1'], leaveOut: [{ name: 'udt', label: 'UDT' }] })
    expect(first!.label).toBe('all that is shown, without the hidden treatment')
    expect(exportName(first!.words, 'trials.csv')).toBe('spring-r1-t1-t2-without-udt-trials.csv')
    expect(whole).toMatchObject({ key: 'c1', leaveOut: [] })
  })
  it('does not name treatments that the shown runs do not have', () => {
    const [first] = choices({ hidden: ['udt'], shown: [runs[1]!] })
    expect(first).toMatchObject({ key: 'shown', label: 'the run that is shown', ids: ['c1-2'], leaveOut: [] })
  })
})
