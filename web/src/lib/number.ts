// Numbers for people. The command line and the exported tables write them by the same rule
// (orchestrator/report/wording); its cases hold both to it.

/** What is written where there is no value. */
export const NOTHING = '–'
const significant = 3

/** As many decimals; a number half-way between two is rounded to the even digit, as Go does. */
function fixed(x: number, decimals: number): string {
  const text = x.toFixed(decimals)
  // Of a number with so few binary digits, toFixed shows one decimal more exactly.
  const exact = x.toFixed(decimals + 1)
  if (!Number.isInteger(x * 2 ** (decimals + 1)) || !exact.endsWith('5')) return text
  const below = exact.slice(0, decimals ? -1 : -2)
  return Number(below.at(-1)) % 2 ? text : below
}

/**
 * With three significant digits at least, and with at least so many decimals, one from 1000 and
 * none from 10 000. Below a millionth it has an exponent.
 */
export function decimal(x: number | undefined, decimals = 2): string {
  if (x === undefined || !Number.isFinite(x)) return NOTHING
  if (x === 0) return (0).toFixed(decimals)
  const [mantissa, exponent] = x.toExponential(significant - 1).split('e')
  const power = Number(exponent)
  if (power < -6) return `${mantissa}e${power}`
  return fixed(x, Math.max(significant - 1 - power, Math.min(decimals, Math.max(4 - power, 0))))
}

/** A share in percent, with at least so many decimals, and three significant digits. */
export function percent(share: number | undefined, decimals = 0): string {
  return share === undefined || !Number.isFinite(share) ? NOTHING : `${decimal(share * 100, decimals)} %`
}

/** A share that is on its way, as that of a battery or of a run's trials: whole percents. */
export const wholePercent = (share: number) => `${Math.round(share * 100)} %`

/** The unit of all throughputs of a table or a chart. */
export interface RateUnit {
  name: 'B/s' | 'KB/s' | 'MB/s'
  /** How many bytes per second it is. */
  bytes: number
  /** What a page with the unit says once. */
  note: string
}

export const KB = 1024
const inBytes: RateUnit = { name: 'B/s', bytes: 1, note: 'B: bytes.' }
export const inKilobytes: RateUnit = { name: 'KB/s', bytes: KB, note: '1 KB is 1024 bytes.' }
const inMegabytes: RateUnit = { name: 'MB/s', bytes: KB * KB, note: '1 MB is 1024 KB of 1024 bytes.' }

/** What a page that shows throughputs in their own units says once. */
export const KB_NOTE = inKilobytes.note

/** The unit for throughputs the largest of which is so many bytes per second: KB/s, below 1 KB/s B/s, and from 10 MB/s on MB/s. */
export function rateUnit(largest: number): RateUnit {
  if (largest > 0 && largest < KB) return inBytes
  return largest >= 10 * KB * KB ? inMegabytes : inKilobytes
}

/** The unit for all of these; those without a value do not count. */
export const rateUnitOf = (bytesPerSecond: (number | undefined)[]) =>
  rateUnit(bytesPerSecond.reduce<number>((most, x) => (x !== undefined && x > most ? x : most), 0))

/** Bytes per second as a number in the unit, without its name. */
export function rateIn(unit: RateUnit, bytesPerSecond: number | undefined, decimals = 2): string {
  return bytesPerSecond === undefined ? NOTHING : decimal(bytesPerSecond / unit.bytes, decimals)
}

/** A throughput that stands alone, in the unit that fits it: "7.45 B/s". */
export function rate(bytesPerSecond: number | undefined, decimals = 2): string {
  if (bytesPerSecond === undefined || !Number.isFinite(bytesPerSecond)) return NOTHING
  const unit = rateUnit(bytesPerSecond)
  return `${rateIn(unit, bytesPerSecond, decimals)} ${unit.name}`
}
