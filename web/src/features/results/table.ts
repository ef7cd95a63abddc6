// The table of the results page: Table 2's layout (place, radio, treatment), or
// any order by one of its columns.
import type { RunSummary, TreatmentSummary } from '@/gen/linktrial/v1/result_pb'
import { RunState } from '@/gen/linktrial/v1/operator_pb'
import { isPartial, radioLabel, settingLabel, sizeLabel, topologyLabel } from './model'
import { NOTHING } from '@/lib/number'

export interface Row {
  key: string
  run: RunSummary
  t: TreatmentSummary
  place: string
  radio: string
  size: string
  settings: string
  mark: string
  partial: string
  /** First of its run: where a rule is drawn in Table 2's order. */
  first: boolean
}

export interface TableColumn {
  name: string
  title: string
  /** What it means, on hover and for screen readers. */
  hint?: string
  number: boolean
  value: (r: Row) => number | string | undefined
}

const metric = (f: (t: TreatmentSummary) => number | undefined) => (r: Row) =>
  r.t.missing || !r.t.valid ? undefined : f(r.t)

export const tableColumns: TableColumn[] = [
  { name: 'place', title: 'Place', number: false, value: (r) => r.place },
  { name: 'radio', title: 'Radio', number: false, value: (r) => r.radio },
  { name: 'treatment', title: 'Treatment', number: false, value: (r) => r.t.label || r.t.name },
  {
    name: 'average',
    title: 'Average',
    hint: 'Mean throughput of the valid trials, with its 95 % interval (Student’s t, not below 0)',
    number: true,
    value: metric((t) => t.average),
  },
  { name: 'max', title: 'Max', hint: 'Maximum', number: true, value: metric((t) => t.max) },
  { name: 'min', title: 'Min', hint: 'Minimum', number: true, value: metric((t) => t.min) },
  {
    name: 'sd',
    title: 'SD',
    hint: 'Sample standard deviation',
    number: true,
    value: (r) => (r.t.valid > 1 ? r.t.sd : undefined),
  },
  {
    name: 'n',
    title: 'n',
    hint: 'Valid trials of those attempted',
    number: true,
    value: (r) => (r.t.missing ? undefined : r.t.valid),
  },
  { name: 'median', title: 'Median', number: true, value: metric((t) => t.median) },
  {
    name: 'ideal',
    title: 'Ideal',
    hint: 'Share of what an all-knowing sender would have reached on the same channel',
    number: true,
    value: metric((t) => t.idealShare),
  },
  {
    name: 'coded',
    title: 'Coded',
    hint: 'Share of the coded bound: what a sender would have reached there who knows the statistics of the channel but not its future',
    number: true,
    value: metric((t) => t.codedBoundShare),
  },
  {
    name: 'ratio',
    title: 'Ratio',
    hint: 'To the reference, paired by iteration: Hodges–Lehmann estimate; the 95 % interval inverts the Wilcoxon signed-rank test and exists from six pairs on',
    number: true,
    value: metric((t) => t.ratio),
  },
  {
    name: 'p',
    title: 'p',
    hint: 'Wilcoxon signed-rank test of the ratios, two-sided: below 0.05 exactly where the interval of the ratio does not contain 1. Small: the same p corrected after Holm for the comparisons of the run, which no interval is',
    number: true,
    value: metric((t) => t.pValue),
  },
  {
    name: 'published',
    title: 'Published',
    hint: 'Average that the plan quotes',
    number: true,
    value: (r) => r.t.published?.average,
  },
]

const why: Partial<Record<RunState, string>> = {
  [RunState.ABORTED]: 'partial: run aborted',
  [RunState.STOPPED]: 'partial: run stopped by a fault',
  [RunState.COMPLETED]: 'partial: some trials have not ended',
}

/** Topologies in the order of the plan, and the radios of each. */
function table2Order(runs: RunSummary[]): RunSummary[] {
  const first = (of: (r: RunSummary) => string) => {
    const seen = [...new Set(runs.map(of))]
    return (r: RunSummary) => seen.indexOf(of(r))
  }
  const place = first(topologyLabel)
  const radio = first(radioLabel)
  return runs
    .map((r, i) => ({ r, i }))
    .sort((a, b) => place(a.r) - place(b.r) || radio(a.r) - radio(b.r) || a.i - b.i)
    .map((x) => x.r)
}

export function rowsOf(runs: RunSummary[], hidden: string[], marks: Map<string, string>): Row[] {
  return table2Order(runs).flatMap((run) =>
    run.treatments
      .filter((t) => !hidden.includes(t.name))
      .map((t, i) => ({
        key: `${run.run?.id} ${t.name}`,
        run,
        t,
        place: topologyLabel(run),
        radio: radioLabel(run),
        size: sizeLabel(run),
        settings: [run.group, settingLabel(run)].filter(Boolean).join(', '),
        mark: marks.get(run.run?.campaignId ?? '') ?? '',
        partial: isPartial(run) ? (why[run.run?.state ?? RunState.UNSPECIFIED] ?? 'partial: still running') : '',
        first: i === 0,
      })),
  )
}

/** "-average" sorts by the average, largest first; nothing is Table 2's order. Rows without a value come last. */
export function sortRows(rows: Row[], by: string): Row[] {
  const down = by.startsWith('-')
  const column = tableColumns.find((c) => c.name === by.replace(/^-/, ''))
  if (!column) return rows
  return rows
    .map((r, i) => ({ r, i, v: column.value(r) }))
    .sort((a, b) => {
      if (a.v === undefined || b.v === undefined) return a.v === b.v ? a.i - b.i : a.v === undefined ? 1 : -1
      const d = typeof a.v === 'string' ? a.v.localeCompare(String(b.v)) : a.v - (b.v as number)
      return (down ? -d : d) || a.i - b.i
    })
    .map((x) => ({ ...x.r, first: false }))
}

/** The order after a click on a column: first the useful way round, then the other, then Table 2's. */
export function nextSort(now: string, column: TableColumn): string {
  const ways = column.number ? [`-${column.name}`, column.name] : [column.name, `-${column.name}`]
  return ways[ways.indexOf(now) + 1] ?? (ways.includes(now) ? '' : ways[0]!)
}

export function pText(p: number | undefined): string {
  if (p === undefined) return NOTHING
  return p < 0.001 ? '< 0.001' : p.toFixed(3)
}
