// Campaigns compared with the first one: what is drawn and written of each difference. Pure.
import type { CampaignDifference } from '@/gen/linktrial/v1/result_pb'
import { NOTHING, rateIn, type RateUnit } from '@/lib/number'

/** The treatments that two campaigns have under the same conditions. */
export interface Section {
  key: string
  where: string
  reference: string
  campaign: string
  lines: CampaignDifference[]
  /** Half of the axis on which the section's differences are drawn, bytes per second. */
  reach: number
}

/** Only differences of runs that pass the filters, and of treatments that are shown. */
export function sectionsOf(all: CampaignDifference[], runs: Set<string>, hidden: string[]): Section[] {
  const out = new Map<string, Section>()
  for (const d of all) {
    if (!runs.has(d.run) || !runs.has(d.referenceRun) || hidden.includes(d.treatment)) continue
    const key = `${d.where} ${d.campaign}`
    const s = out.get(key) ?? {
      key,
      where: d.where,
      reference: d.reference,
      campaign: d.campaign,
      lines: [],
      reach: 0,
    }
    s.lines.push(d)
    s.reach = Math.max(s.reach, ...[d.difference, d.ciLow, d.ciHigh].map((x) => Math.abs(x ?? 0)))
    out.set(key, s)
  }
  return [...out.values()]
}

/** Where a difference stands on an axis from −reach to reach, in percent of its width. */
export function at(x: number, reach: number): number {
  return reach > 0 ? 50 + (50 * x) / reach : 50
}

const sign = (x: number, text: string) => (x > 0 && /[1-9]/.test(text) ? `+${text}` : text.replace('-', '−'))

export const signedRate = (unit: RateUnit, x: number | undefined) =>
  x === undefined ? NOTHING : sign(x, rateIn(unit, x))
export const signedPercent = (x: number | undefined) => (x === undefined ? NOTHING : `${sign(x, x.toFixed(1))} %`)
export const rangeText = (unit: RateUnit, d: CampaignDifference) =>
  d.ciLow === undefined || d.ciHigh === undefined
    ? NOTHING
    : `${signedRate(unit, d.ciLow)} to ${signedRate(unit, d.ciHigh)}`

/** What the trials say of a difference. */
export const decision = (d: CampaignDifference) =>
  d.difference === undefined ? 'not comparable' : d.decided ? 'decided' : 'not decided'

/** For who cannot see the drawing. */
export function spoken(unit: RateUnit, d: CampaignDifference): string {
  if (d.difference === undefined) return 'no difference, because one of the two has no valid trial'
  const range = d.ciLow === undefined ? '' : `, 95 % interval ${rangeText(unit, d)}`
  return `${signedRate(unit, d.difference)} ${unit.name}${range}: ${decision(d)}`
}

/** A number at the axis. */
export const tick = (unit: RateUnit, x: number) => sign(x, String(Number((x / unit.bytes).toPrecision(2))))
