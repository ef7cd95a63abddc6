import { create } from '@bufbuild/protobuf'
import { expect, it } from 'vitest'
import { DayRunSchema, type DaySummary, DaySummarySchema } from '@/gen/linktrial/v1/day_pb'
import { auditText, dateIn, dayIsWell, dayTroubles, zones } from './day'

it('today is a date of a zone', () => {
  const now = new Date('2026-11-30T23:30:00Z')
  expect(dateIn('UTC', now)).toBe('2026-11-30')
  expect(dateIn('Europe/Berlin', now)).toBe('2026-12-01')
  expect(dateIn('America/New_York', now)).toBe('2026-11-30')
  expect(zones('Europe/Berlin')).toEqual(['Europe/Berlin', 'UTC'])
  expect(zones('UTC')).toEqual(['UTC'])
})

it('an archive is saved from where its key says', () => {})

it('an audit is told in a line', () => {
  for (const [run, want] of [
    [{ passed: 13 }, 'no findings; 13 checks passed'],
    [{ passed: 1, partly: 2, findings: 1 }, '1 finding; 1 check passed, 2 partly checked'],
    [{ passed: 9, notChecked: 3, findings: 4 }, '4 findings; 9 checks passed, 3 not checked'],
    [{ failure: 'the sheet is damaged', findings: 4 }, 'not audited: the sheet is damaged'],
  ] as const)
    expect(auditText(create(DayRunSchema, run))).toBe(want)
})

it('a day is well when nothing is found, missing or under way', () => {
  const summary = () =>
    create(DaySummarySchema, {
      campaigns: [{ id: 'c', runs: [{ id: 'c-1', passed: 13 }], files: 20 }],
      backup: { bytes: 1n, fingerprint: '5d2c' },
    })
  expect(dayIsWell(summary())).toBe(true)
  expect(dayTroubles(summary())).toEqual([])
  expect(dayIsWell(create(DaySummarySchema))).toBe(true)
  const changes: [(s: DaySummary) => unknown, string[]][] = [
    [(s) => s.incomplete.push('Run d-1 is not over'), []],
    [(s) => (s.campaigns[0]!.runs[0]!.failure = 'no sheet'), []],
    [(s) => s.campaigns[0]!.failures.push('cdf.svg: failed'), ['Campaign c, not exported: cdf.svg: failed']],
    [(s) => (s.backup!.failure = 'the disk is full'), ['No backup: the disk is full']],
    [
      (s) => Object.assign(s.campaigns[0]!.runs[0]!, { findings: 3, first: ['stored: record 7 is missing'] }),
      ['Run c-1, stored: record 7 is missing', 'Run c-1: and 2 more findings, in the archive'],
    ],
  ]
  for (const [change, want] of changes) {
    const s = summary()
    change(s)
    expect(dayIsWell(s)).toBe(false)
    expect(dayTroubles(s)).toEqual(want)
  }
})
