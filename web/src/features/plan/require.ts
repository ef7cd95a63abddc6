// What a plan requires of its results, in words for its form, and the edits that follow when
// a treatment gets another name. The requirements themselves are edited in the text.
import type { Edit } from './conditions'
import { lineOf, locked, type Path, type PlanText } from './text'
import { isPlain, plain, shown, type Plain } from './values'

export interface RequiredView {
  text: string
  line: number
  /** Where the entry names treatments. */
  names: { path: Path; name: string }[]
}

const metrics: Record<string, (bounds: Plain) => string> = {
  average: () => 'average',
  delivered: (b) => `delivered by ${shown(b.by)}`,
  share_of_ideal: () => 'share of Ideal',
  share_of_coded_bound: () => 'share of the coded bound',
  failures: () => 'failed',
  ratio_to: (b) => `throughput of that of ${shown(b.treatment)}`,
  delay_mean: () => 'mean delay',
  delay_p95: () => '95th percentile of the delay',
  delay_p99: () => '99th percentile of the delay',
  loss: () => 'loss',
}

const list = (v: unknown): unknown[] => (v === undefined || v === null ? [] : Array.isArray(v) ? v : [v])
const and = (v: unknown) => list(v).map(shown).join(', ')

/** The entries of `require`; undefined: only the text can say them. */
export function requiredOf(p: PlanText, v: unknown): RequiredView[] | undefined {
  if (v === undefined || v === null) return []
  if (!Array.isArray(v) || !v.every(isPlain) || locked(p, ['require'])) return undefined
  return v.map((e: Plain, i) => ({
    text: inWords(e),
    line: lineOf(p, ['require', i]),
    names: namesOf(e, ['require', i]),
  }))
}

function inWords(e: Plain): string {
  const metric = Object.keys(metrics).find((m) => e[m] !== undefined)
  if (!metric) return shown(e)
  const b = plain(e[metric])
  const bounds = [
    b.at_least !== undefined && `at least ${shown(b.at_least)}`,
    b.at_most !== undefined && `at most ${shown(b.at_most)}`,
  ]
  const of = and(e.treatment)
  const who = e.probe === undefined ? of || 'every treatment' : shown(e.probe) + (of && ` beside ${of}`)
  const where = Object.entries(plain(e.where)).map(([axis, value]) => `${axis} ${shown(value)}`)
  const limits = [and(e.group), and(e.radio), and(e.topology), ...where].filter(Boolean).join(', ')
  return `${who}: ${metrics[metric]!(b)} ${bounds.filter(Boolean).join(', ')}${limits && ` (${limits})`}`
}

function namesOf(e: Plain, at: Path): RequiredView['names'] {
  const several = (key: string): RequiredView['names'] =>
    Array.isArray(e[key])
      ? e[key].map((name, k) => ({ path: [...at, key, k], name: shown(name) }))
      : [{ path: [...at, key], name: shown(e[key]) }]
  const ratio = { path: [...at, 'ratio_to', 'treatment'], name: shown(plain(e.ratio_to).treatment) }
  return [...several('treatment'), ...several('probe'), ratio].filter((n) => n.name)
}

/** The edits that follow when a treatment gets another name: requirements name it. */
export function renamedRequired(required: RequiredView[] | undefined, from: string, to: string): Edit[] {
  if (!from || !to) return []
  return (required ?? []).flatMap((r) => r.names.filter((n) => n.name === from).map((n): Edit => [n.path, to]))
}
