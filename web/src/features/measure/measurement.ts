// A measurement of a link for people: what is shown of its plan, its values and its time.
import type { MeasuredValue, Measurement, MeasurementPlan } from '@/gen/linktrial/v1/measure_pb'
import { wholeSeconds } from '@/lib/format'

/** A row of the table of values: one metric, both ways side by side. */
export interface ValueRow {
  group: string
  metric: string
  there: string
  back: string
  note: string
}

/** Values with both ways of a metric in one row, in the order of the page. */
export function valueRows(values: readonly MeasuredValue[]): ValueRow[] {
  const rows = new Map<string, ValueRow>()
  for (const v of values) {
    const key = `${v.group}\n${v.metric}`
    const row = rows.get(key) ?? { group: v.group, metric: v.metric, there: '', back: '', note: '' }
    if (v.way.startsWith('server')) row.back = v.text
    else row.there = v.text
    if (v.note && !row.note.split('; ').includes(v.note)) row.note = [row.note, v.note].filter(Boolean).join('; ')
    rows.set(key, row)
  }
  return [...rows.values()]
}

/** How long a measurement takes, before it starts. */
export function announcement(p: MeasurementPlan): string {
  const most = wholeSeconds(p.boundSeconds)
  if (p.restFollows)
    return `At most ${most}, about 2 minutes above 2 Mbit/s: the rate of the radio is not known, so the capacity is searched first.`
  return `At most ${most}.`
}

/** The measurements to list: a search that has its rest is part of that. */
export function listed(all: readonly Measurement[]): Measurement[] {
  return all.filter((m, i) => m.part !== 'measure-search' || all[i - 1]?.part !== 'measure-rest')
}
