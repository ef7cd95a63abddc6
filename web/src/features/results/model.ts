// From the server's summaries to what figures and tables are drawn from. Pure:
// which runs are shown, which share a panel, what each treatment's slot holds.
import type { Delivery, PublishedValue, RunSummary, TreatmentSummary } from '@/gen/linktrial/v1/result_pb'
import { PointVerdict } from '@/gen/linktrial/v1/result_pb'
import { RunState } from '@/gen/linktrial/v1/operator_pb'
import { payload } from '@/lib/format'
import type { Grouping, View } from './view'

/** One attempt, where it leads, and its value in bytes per second (0: none). */
export interface Dot {
  run: string
  trial: number
  attempt: number
  iteration: number
  verdict: PointVerdict
  value: number
  /** Seconds that an all-knowing sender would have needed; 0: not known. */
  ideal: number
  /** The same of the coded bound. */
  coded: number
  elapsed: number
  counts: boolean
  reason: string
}

/** What one treatment did in one run, or in several taken together. Bytes per second. */
export interface Slot {
  treatment: string
  label: string
  /** Which of the compared campaigns: "A", "B"; empty where there is one. */
  mark: string
  /** The run or runs within the panel. */
  group: string
  missing: string
  valid: number
  attempted: number
  failed: number
  planned: number
  average: number
  sd: number
  min: number
  max: number
  median: number
  idealShare?: number
  /** Throughput of the all-knowing sender in the same trials; NaN where not known. */
  ideal: number
  codedShare?: number
  /** The same of the coded bound. */
  coded: number
  published?: PublishedValue
  /** Of one run: when payloads were there, over failed trials too. */
  delivery?: Delivery
  /** Values that count. */
  dots: Dot[]
  /** Attempts without one. */
  failures: Dot[]
}

export interface Panel {
  key: string
  /** What tells it from the other panels; of a single one, all that its runs have in common. */
  title: string
  /** All that its runs have in common. */
  fullTitle: string
  runs: RunSummary[]
  slots: Slot[]
  partial: boolean
}

/** Why a panel of a sweep has nothing to draw, where it is of a metric called so; empty: it has something. */
export function nothingSwept(
  curves: { treatment: string; source: string; value: number[] }[],
  view: { hidden: string[]; published: boolean },
  metric: string,
): string {
  const known = curves.filter((c) => c.value.some(Number.isFinite))
  if (!known.length) return `These runs have no valid trial with a value of ${metric}.`
  const chosen = known.filter((c) => !view.hidden.includes(c.treatment))
  if (!chosen.length) return 'All its treatments with a value are hidden.'
  return view.published || chosen.some((c) => !c.source) ? '' : 'All its values are published ones, which are hidden.'
}

/** Why a panel has nothing to draw; empty: it has something. */
export function nothingIn(p: Pick<Panel, 'runs' | 'slots'>): string {
  if (p.slots.length) return p.slots.every((s) => s.missing) ? 'None of its treatments could be run.' : ''
  return p.runs.some((r) => r.treatments.length)
    ? 'All its treatments are hidden.'
    : 'It has probes alone: their delays are in the Table tab.'
}

export const sizeLabel = (r: RunSummary) => payload(r.run?.sizeBytes)
export const settingLabel = (r: RunSummary) => r.settings.map((s) => `${s.axis} ${s.label}`).join(', ')
export const radioLabel = (r: RunSummary) => r.radioTitle || r.run?.radio || ''
export const topologyLabel = (r: RunSummary) => r.topologyTitle || r.run?.topology || ''
/** All that tells a run from others of its campaign. */
export const placeLabel = (r: RunSummary) =>
  [topologyLabel(r), radioLabel(r), sizeLabel(r), r.group, settingLabel(r), r.rule].filter(Boolean).join(' · ')

/** A run whose trials have not all been measured: its values may still change, or stay incomplete. */
export function isPartial(r: RunSummary): boolean {
  return r.run?.state !== RunState.COMPLETED || r.run.trialsEnded < r.run.trials
}

/** Letters for compared campaigns, in the order chosen; none where there is only one. */
export function campaignMarks(runs: RunSummary[]): Map<string, string> {
  const ids = [...new Set(runs.map((r) => r.run?.campaignId ?? ''))]
  return new Map(ids.map((id, i) => [id, ids.length > 1 ? (i < 26 ? String.fromCharCode(65 + i) : `#${i + 1}`) : '']))
}

export function filterRuns(
  runs: RunSummary[],
  v: Pick<View, 'radios' | 'topologies' | 'sizes' | 'settings'>,
): RunSummary[] {
  const has = (list: string[], x: string) => !list.length || list.includes(x)
  return runs.filter(
    (r) =>
      has(v.radios, r.run?.radio ?? '') &&
      has(v.topologies, r.run?.topology ?? '') &&
      has(v.sizes, String(r.run?.sizeBytes ?? '')) &&
      // A setting is chosen by axis and value; values of one axis widen, axes narrow.
      [...new Set(v.settings.map((s) => s.split('=')[0]!))].every((axis) =>
        r.settings.some((s) => s.axis === axis && v.settings.includes(`${s.axis}=${s.label}`)),
      ),
  )
}

/** Names and labels of all treatments, in the order of the plans. */
export function treatmentsOf(runs: RunSummary[]): { name: string; label: string }[] {
  const out = new Map<string, string>()
  for (const r of runs) for (const t of r.treatments) if (!out.has(t.name)) out.set(t.name, t.label || t.name)
  return [...out].map(([name, label]) => ({ name, label }))
}

/** The attempts of a run, a list for each treatment. */
export function dotsOf(r: RunSummary): Dot[][] {
  const out: Dot[][] = r.treatments.map(() => [])
  const p = r.points
  if (!p) return out
  for (let i = 0; i < p.trial.length; i++) {
    out[p.treatment[i]!]?.push({
      run: r.run?.id ?? '',
      trial: p.trial[i]!,
      attempt: p.attempt[i]!,
      iteration: p.iteration[i]!,
      verdict: p.verdict[i] ?? 0,
      value: p.throughput[i] ?? 0,
      ideal: p.ideal[i] ?? 0,
      coded: p.codedBound[i] ?? 0,
      elapsed: p.elapsed[i] ?? 0,
      counts: p.counts[i] ?? false,
      reason: p.reason[i] ?? '',
    })
  }
  return out
}

function slotOf(t: TreatmentSummary, dots: Dot[], mark: string, group: string): Slot {
  const counting = dots.filter((d) => d.counts && d.value > 0)
  return {
    treatment: t.name,
    label: t.label || t.name,
    mark,
    group,
    missing: t.missing,
    valid: t.valid,
    attempted: t.attempted,
    failed: t.failed,
    planned: t.planned,
    average: t.average,
    sd: t.sd,
    min: t.min,
    max: t.max,
    median: t.median,
    idealShare: t.idealShare,
    ideal: t.idealAverage ?? NaN,
    codedShare: t.codedBoundShare,
    coded: t.codedBoundAverage ?? NaN,
    published: t.published,
    delivery: t.delivery,
    dots: counting,
    // A success that a later attempt has taken the place of is none.
    failures: dots.filter(
      (d) =>
        !(d.counts && d.value > 0) && d.verdict !== PointVerdict.UNSPECIFIED && d.verdict !== PointVerdict.SUCCEEDED,
    ),
  }
}

const median = (sorted: number[]) => {
  const n = sorted.length
  return n ? (n % 2 ? sorted[(n - 1) / 2]! : (sorted[n / 2 - 1]! + sorted[n / 2]!) / 2) : 0
}

/** Several slots of one treatment taken together: all trials as one sample. */
export function pool(slots: Slot[]): Slot {
  const first = slots[0]!
  const dots = slots.flatMap((s) => s.dots)
  const values = dots.map((d) => d.value).sort((a, b) => a - b)
  const n = values.length
  const mean = n ? values.reduce((a, b) => a + b, 0) / n : 0
  const sd = n > 1 ? Math.sqrt(values.reduce((s, x) => s + (x - mean) ** 2, 0) / (n - 1)) : 0
  const sum = (f: (s: Slot) => number) => slots.reduce((a, s) => a + f(s), 0)
  const share = (of: (s: Slot) => number | undefined) => {
    const known = slots.filter((s) => of(s) !== undefined && s.valid > 0)
    const trials = known.reduce((a, s) => a + s.valid, 0)
    return trials ? known.reduce((a, s) => a + of(s)! * s.valid, 0) / trials : undefined
  }
  return {
    ...first,
    group: '',
    missing: slots.every((s) => s.missing) ? first.missing : '',
    valid: n,
    attempted: sum((s) => s.attempted),
    failed: sum((s) => s.failed),
    planned: sum((s) => s.planned),
    average: mean,
    sd,
    min: values[0] ?? 0,
    max: values[n - 1] ?? 0,
    median: median(values),
    idealShare: share((s) => s.idealShare),
    codedShare: share((s) => s.codedShare),
    // Of different channels; a mean of them would be nobody's bound.
    ideal: NaN,
    coded: NaN,
    published: undefined,
    delivery: undefined,
    dots,
    failures: slots.flatMap((s) => s.failures),
  }
}

const attributes: { of: (r: RunSummary) => string; text: (r: RunSummary) => string }[] = [
  { of: (r) => r.run?.topology ?? '', text: topologyLabel },
  { of: (r) => r.run?.radio ?? '', text: radioLabel },
  { of: sizeLabel, text: sizeLabel },
  { of: settingLabel, text: settingLabel },
  { of: (r) => r.group, text: (r) => r.group },
  // Of runs that a rule stopped nothing may look as of others.
  { of: (r) => r.rule, text: (r) => r.rule },
]

function keyOf(r: RunSummary, by: Grouping): string {
  switch (by) {
    case 'topology':
      return r.run?.topology ?? ''
    case 'radio':
      return r.run?.radio ?? ''
    case 'size':
      return sizeLabel(r)
    case 'run':
      return r.run?.id ?? ''
    case 'cell':
      return attributes.map((a) => a.of(r)).join('\u0000')
  }
}

const shared = (runs: RunSummary[]) =>
  attributes.filter((a) => runs.every((r) => a.of(r) === a.of(runs[0]!)) && a.text(runs[0]!))

/** What all runs have in common, for a title. */
export function commonTitle(runs: RunSummary[]): string {
  return shared(runs)
    .map((a) => a.text(runs[0]!))
    .join(' · ')
}

/** What tells each run of a panel from the others. */
export function differences(runs: RunSummary[]): string[] {
  const differing = attributes.filter((a) => runs.some((r) => a.of(r) !== a.of(runs[0]!)))
  return runs.map((r) =>
    differing
      .map((a) => a.text(r))
      .filter(Boolean)
      .join(' · '),
  )
}

export interface PanelOptions {
  by: Grouping
  hidden: string[]
  marks: Map<string, string>
  /** Take the runs of a panel together, by treatment and campaign. */
  pooled?: boolean
}

export function panelsOf(runs: RunSummary[], o: PanelOptions): Panel[] {
  const byKey = new Map<string, RunSummary[]>()
  for (const r of runs) {
    const k = keyOf(r, o.by)
    const list = byKey.get(k)
    if (list) list.push(r)
    else byKey.set(k, [r])
  }
  const everywhere = byKey.size > 1 ? shared(runs) : []
  return [...byKey].map(([key, members]) => {
    const apart = differences(members)
    let slots = members.flatMap((r, i) => {
      const dots = dotsOf(r)
      return r.treatments.flatMap((t, k) =>
        o.hidden.includes(t.name) ? [] : [slotOf(t, dots[k]!, o.marks.get(r.run?.campaignId ?? '') ?? '', apart[i]!)],
      )
    })
    if (o.pooled) {
      const together = new Map<string, Slot[]>()
      for (const s of slots)
        together.set(`${s.treatment}\u0000${s.mark}`, [...(together.get(`${s.treatment}\u0000${s.mark}`) ?? []), s])
      slots = [...together.values()].map(pool)
    }
    // Compared campaigns stand side by side, treatment by treatment.
    if (o.pooled || apart.every((a) => a === '')) {
      const order = treatmentsOf(members).map((t) => t.name)
      slots = slots
        .map((s, i) => ({ s, i }))
        .sort((a, b) => order.indexOf(a.s.treatment) - order.indexOf(b.s.treatment) || a.i - b.i)
        .map((x) => x.s)
    }
    return {
      key,
      title:
        shared(members)
          .filter((a) => !everywhere.includes(a))
          .map((a) => a.text(members[0]!))
          .join(' · ') ||
        commonTitle(members) ||
        'All runs',
      fullTitle: commonTitle(members) || 'All runs',
      runs: members,
      slots,
      partial: members.some(isPartial),
    }
  })
}

/** The end of the scale that all panels share, or that one needs for itself; bytes per second. */
export function topOf(slots: Slot[], shown: { ideal: boolean; coded: boolean; published: boolean }): number {
  let top = 0
  for (const s of slots) {
    if (s.valid) top = Math.max(top, s.max, s.average + s.sd)
    if (shown.ideal && Number.isFinite(s.ideal)) top = Math.max(top, s.ideal)
    if (shown.coded && Number.isFinite(s.coded)) top = Math.max(top, s.coded)
    if (shown.published && s.published) top = Math.max(top, s.published.max, s.published.average + s.published.sd)
  }
  return top
}

/** A round number at or above x: 1, 1.5, 2, 2.5, 3, 4, 5, 6, 8 times a power of ten. */
export function roundUp(x: number): number {
  if (!(x > 0)) return 1
  const power = 10 ** Math.floor(Math.log10(x))
  const step = [1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10].find((s) => s * power >= x * 0.999999)!
  return step * power
}

/** The empirical distribution: at each value the share of trials at or below it. */
export function cdf(values: number[]): [number, number][] {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted.map((v, i) => [v, (i + 1) / sorted.length])
}

/** A gap wherever an iteration has no point; points are in the order of iterations. */
export function withGaps(points: number[][]): number[][] {
  return points.flatMap((p, i) =>
    i > 0 && p[0]! > points[i - 1]![0]! + 1 ? [[points[i - 1]![0]! + 1, Number.NaN], p] : [p],
  )
}

/** The means of equal shares of the points, each at the middle of its share. */
export function blockMeans(points: number[][], blocks: number): number[][] {
  const size = Math.ceil(points.length / blocks)
  const out: number[][] = []
  for (let i = 0; i < points.length; i += size) {
    const block = points.slice(i, i + size)
    const mean = (k: number) => block.reduce((sum, p) => sum + p[k]!, 0) / block.length
    out.push([mean(0), mean(1)])
  }
  return out
}
