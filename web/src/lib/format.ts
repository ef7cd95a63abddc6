// Sizes, rates of radios, times and texts for people.
import type { Timestamp } from '@bufbuild/protobuf/wkt'
import { timestampDate } from '@bufbuild/protobuf/wkt'
import { decimal, NOTHING } from './number'

/** From which number what is counted, as files and commands have it (docs/data-format.md). */
export const NUMBERS_NOTE = 'Trials and flows are counted from 0, iterations and attempts from 1.'

export function bytes(n: number | bigint | undefined): string {
  if (n === undefined) return NOTHING
  let x = Number(n)
  for (const unit of ['B', 'KiB', 'MiB', 'GiB', 'TiB']) {
    if (Math.abs(x) < 1024 || unit === 'TiB') {
      return `${unit === 'B' || Number.isInteger(x) ? x : decimal(x, 1)} ${unit}`
    }
    x /= 1024
  }
  return NOTHING
}

const binaryUnits = [
  [2 ** 30, 'GiB'],
  [2 ** 20, 'MiB'],
  [2 ** 10, 'KiB'],
] as const

/** A size that somebody chose, exactly: in the largest unit of which it is a whole number, as plans may have it ("1 MiB", "1500 B"). */
export function exactBytes(n: number): string {
  const [size, unit] = binaryUnits.find(([size]) => n >= size && n % size === 0) ?? [1, 'B']
  return `${exact(n / size)} ${unit}`
}

/** A number as its source has it: with all its digits, but without those that computing with binary fractions adds. */
export const exact = (x: number) => String(Number.isInteger(x) ? x : Number(x.toPrecision(12)))

/** What the transfers of a run carry; where that is nothing, they end after a time that the plan sets. */
export const payload = (n: number | bigint | undefined) =>
  n !== undefined && Number(n) === 0 ? 'for a set time' : bytes(n)

/** Its first letter as that of a heading. */
export const capital = (text: string) => text.charAt(0).toUpperCase() + text.slice(1)

/** How many there are, and of how many where some are missing: "3", "2/3". */
export const ofAll = (n: number, all: number) => (n === all ? String(n) : `${n}/${all}`)

/** Text of the orchestrator as a sentence: with a capital letter and a full stop. */
export function sentence(text: string): string {
  return text && capital(text) + (/[.!?]$/.test(text) ? '' : '.')
}

/** Seconds that change while one looks: whole ones, "13 s". */
export function wholeSeconds(s: number): string {
  const whole = Math.max(0, Math.round(s))
  return whole < 60 ? `${whole} s` : seconds(whole)
}

/** A duration in seconds, as short as it stays clear: "0.42 s", "3 min 5 s", "2 h 10 min". */
export function seconds(s: number | undefined): string {
  if (s === undefined || !Number.isFinite(s)) return NOTHING
  const sign = s < 0 ? '−' : ''
  const x = Math.abs(s)
  if (x < 0.9995) return `${sign}${decimal(x * 1000, 0)} ms`
  if (x < 59.95) return `${sign}${decimal(x, 1)} s`
  const whole = Math.round(x)
  if (whole < 3600) return `${sign}${Math.floor(whole / 60)} min ${whole % 60} s`
  if (whole < 86400) return `${sign}${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`
  return `${sign}${Math.floor(whole / 86400)} d ${Math.floor((whole % 86400) / 3600)} h`
}

export function bitrate(bps: number | undefined): string {
  if (bps === undefined || !Number.isFinite(bps)) return NOTHING
  if (bps >= 999_500) return `${trim(bps / 1e6)} Mbit/s`
  if (bps >= 999.5) return `${trim(bps / 1e3)} kbit/s`
  return `${trim(bps)} bit/s`
}

function trim(x: number): string {
  return String(Number(x.toPrecision(3)))
}

/** How many trials have ended, and how many of these the plan's rule to stop by left out. */
export function trialCount(r: { trials: number; trialsEnded: number; trialsNotNeeded: number }): string {
  return `${r.trialsEnded} of ${r.trials}${r.trialsNotNeeded ? `, ${r.trialsNotNeeded} not needed` : ''}`
}

/** Of attempts that failed, were aborted or are invalid, some of which were repeated: no count of trials. */
export function unsuccessful(attempts: number): string {
  return `${attempts} ${attempts === 1 ? 'attempt' : 'attempts'} without success`
}

export function date(t: Timestamp | Date | undefined): Date | undefined {
  if (!t) return undefined
  return t instanceof Date ? t : timestampDate(t)
}

/** A moment to the second: "2026-03-14 10:00:00 UTC". All that people read is in UTC, as in exports, logs and on the command line. */
export function utc(t: Timestamp | Date | undefined): string {
  const d = date(t)
  return d
    ? `${d
        .toISOString()
        .replace('T', ' ')
        .replace(/\.\d+Z$/, '')} UTC`
    : ''
}

/** A moment as pages show it: "10:00:00 UTC"; of another day (in UTC) with its day. */
export function moment(t: Timestamp | Date | undefined, now = new Date()): string {
  const text = utc(t)
  if (!text) return NOTHING
  return text.startsWith(now.toISOString().slice(0, 10)) ? text.slice(11) : text
}

// 24 hours, and in the language of the pages, whatever the browser's is.
const local = new Intl.DateTimeFormat('en-GB', {
  year: 'numeric',
  month: 'short',
  day: 'numeric',
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  hourCycle: 'h23',
  timeZoneName: 'short',
})

/** The same moment in the viewer's zone, for the title of what shows it: "14 Mar 2026, 11:00:00 CET". */
export function localTime(t: Timestamp | Date | undefined): string {
  const d = date(t)
  return d ? local.format(d) : ''
}

/** Whether the clocks of a run in this place are virtual, by its name. */
export const isVirtual = (place: string | undefined) => !!place?.endsWith('virtual time')

/** What the clocks of the virtual-time lab show when it starts. */
const virtualStart = Date.UTC(2000, 0, 1)

/** A moment of virtual time: how long after the lab's start, which is no date. */
export function virtualMoment(t: Timestamp | Date | undefined): string {
  const d = date(t)
  return d ? `${seconds((d.getTime() - virtualStart) / 1000)} (virtual)` : NOTHING
}
/** What a virtual moment means, for its title. */
export const VIRTUAL_NOTE = 'Virtual time since the lab of the run started'

/** How long ago: "12 s ago". */
export function ago(t: Timestamp | Date | undefined, now = Date.now()): string {
  const d = date(t)
  if (!d) return 'never'
  const s = Math.max(0, (now - d.getTime()) / 1000)
  return s < 1 ? 'now' : `${seconds(Math.floor(s)).replace(/\.0+ s$/, ' s')} ago`
}

/** "queue_bytes" is a queue in bytes. */
export function unitOf(name: string): { title: string; unit: string } {
  const units: [string, string][] = [
    ['_bytes', 'bytes'],
    ['_packets', 'packets'],
    ['_ms', 'ms'],
    ['_us', 'µs'],
    ['_seconds', 's'],
    ['_s', 's'],
    ['_bps', 'bit/s'],
    ['_db', 'dB'],
    ['_dbm', 'dBm'],
    ['_share', ''],
    ['_percent', '%'],
  ]
  const hit = units.find(([end]) => name.toLowerCase().endsWith(end))
  const stem = hit ? name.slice(0, -hit[0].length) : name
  return { title: stem.replace(/_/g, ' '), unit: hit?.[1] ?? '' }
}
