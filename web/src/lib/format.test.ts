import { describe, expect, it } from 'vitest'
import {
  trialCount,
  ago,
  bitrate,
  bytes,
  isVirtual,
  localTime,
  moment,
  payload,
  seconds,
  unitOf,
  utc,
  virtualMoment,
} from './format'

describe('format', () => {
  it('writes sizes', () => {
    expect(bytes(262144)).toBe('256 KiB')
    expect(bytes(1536n)).toBe('1.50 KiB')
    expect(bytes(5)).toBe('5 B')
    expect(payload(262144)).toBe('256 KiB')
    expect(payload(0n)).toBe('for a set time')
  })
  it.each([
    [0.0042, '4.20 ms'],
    [0.42, '420 ms'],
    [4.2, '4.20 s'],
    [59.9, '59.9 s'],
    [59.96, '1 min 0 s'],
    [0.0104, '10.4 ms'],
    [0.00004, '0.0400 ms'],
    [0.9996, '1.00 s'],
    [185, '3 min 5 s'],
    [7800, '2 h 10 min'],
    [90000, '1 d 1 h'],
    [-0.3, '−300 ms'],
    [Number.NaN, '–'],
  ])('writes %d s as %s', (s, text) => expect(seconds(s)).toBe(text))
  it('writes rates', () => {
    expect(bitrate(64000)).toBe('64 kbit/s')
    expect(bitrate(6.8e6)).toBe('6.8 Mbit/s')
  })
  it('shows a moment in UTC, and in the zone of the viewer beside it', () => {
    const at = new Date('2026-03-14T10:00:00.5Z')
    expect(utc(at)).toBe('2026-03-14 10:00:00 UTC')
    expect(moment(at, new Date('2026-03-15T00:00:00Z'))).toBe('2026-03-14 10:00:00 UTC')
    expect(moment(at, new Date('2026-03-14T23:59:59Z'))).toBe('10:00:00 UTC')
    expect(moment(undefined)).toBe('–')
    // Whatever the browser's language: no AM, no PM, and midnight is 00.
    expect(localTime(at)).toMatch(/^1[345] Mar 2026, \d\d:00:00 \S+$/)
    expect(localTime(new Date(2026, 2, 14, 0, 5))).toMatch(/^14 Mar 2026, 00:05:00 \S+$/)
    expect(ago(at, at.getTime() + 12_400)).toBe('12 s ago')
    expect(ago(undefined)).toBe('never')
  })
})

it('shows virtual time as what has passed, not as a day of the year 2000', () => {
  expect(virtualMoment(new Date('2000-01-01T00:01:05Z'))).toBe('1 min 5 s (virtual)')
  expect(virtualMoment(undefined)).toBe('–')
  expect([isVirtual('emulated, virtual time'), isVirtual('emulated, real time'), isVirtual(undefined)]).toEqual([
    true,
    false,
    false,
  ])
})

it.each([
  ['queue_bytes', 'queue', 'bytes'],
  ['snr_db', 'snr', 'dB'],
  ['pkt_snd_loss', 'pkt snd loss', ''],
  ['rtt_ms', 'rtt', 'ms'],
])('reads the unit of %s', (name, title, unit) => expect(unitOf(name)).toEqual({ title, unit }))

it('trials that have ended are counted with those that were not needed', () => {
  expect(trialCount({ trials: 60, trialsEnded: 45, trialsNotNeeded: 0 })).toBe('45 of 60')
  expect(trialCount({ trials: 60, trialsEnded: 60, trialsNotNeeded: 15 })).toBe('60 of 60, 15 not needed')
})
