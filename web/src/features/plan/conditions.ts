// What a plan's form shows of probes and of rules of validity, and the edits of its text
// that adding, changing and taking them away are.
import { locked, type Path, type PlanText } from './text'
import { flat, isPlain, shown, typed, type Plain } from './values'

export type Edit = [path: Path, value: unknown]

const onlyFlat = (v: unknown) => isPlain(v) && Object.values(v).every(flat)

/** One entry of `probes`. */
export interface ProbeView {
  treatment: string
  from: string
  to: string
  /** How long its own trials last; empty: it has none. */
  alone: string
  /** As the text has it; empty: so without being said, which is yes. */
  beside: string
}

/** The entries of `probes`; undefined: only the text can say them. */
export function probesOf(p: PlanText, v: unknown): ProbeView[] | undefined {
  if (v === undefined || v === null) return []
  if (!Array.isArray(v) || !v.every(onlyFlat) || locked(p, ['probes'])) return undefined
  return v.map((e: Plain) => ({
    treatment: shown(e.treatment),
    from: shown(e.from),
    to: shown(e.to),
    alone: shown(e.alone),
    beside: shown(e.beside),
  }))
}

export type Way = 'client' | 'server'

/** Where a probe's packets come from: one end names the other. Empty: from where none can. */
export function wayOf(p: Pick<ProbeView, 'from' | 'to'>): Way | '' {
  if (p.from === 'server' && (p.to === '' || p.to === 'client')) return 'server'
  if (p.from === '' && p.to === 'client') return 'server'
  return (p.from === '' || p.from === 'client') && (p.to === '' || p.to === 'server') ? 'client' : ''
}

/** The edits that turn a probe around. */
export function wayEdits(i: number, p: Pick<ProbeView, 'from' | 'to'>, way: string): Edit[] {
  const out: Edit[] = p.to ? [[['probes', i, 'to'], undefined]] : []
  if (way === 'server') out.push([['probes', i, 'from'], 'server'])
  else if (p.from) out.push([['probes', i, 'from'], undefined])
  return out
}

/** One entry more in a list of the text, which may have none yet. */
export function added(list: Path, length: number, entry: Plain): Edit {
  return length ? [[...list, length], entry] : [list, [entry]]
}

/** An entry taken out of a list, and with the last one the list. */
export function removed(list: Path, length: number, i: number): Edit {
  return [length > 1 ? [...list, i] : list, undefined]
}

/** The edits that follow when a treatment gets another name: probes name it. */
export function renamed(probes: ProbeView[] | undefined, from: string, to: string): Edit[] {
  return (probes ?? []).flatMap((p, i): Edit[] =>
    p.treatment === from && from && to ? [[['probes', i, 'treatment'], to]] : [],
  )
}

/** One limit of a rule: the field of its value in the text. */
export interface LimitView {
  label: string
  path: Path
  value: string
  /** What may stand there, by an example. */
  example: string
}
export interface RuleView {
  key: string
  title: string
  help: string
  path: Path
  limits: LimitView[]
}
/** A reading of the radio with its limits. */
export interface ReadingView {
  reading: string
  min: string
  max: string
}
export interface ValidView {
  rules: RuleView[]
  readings: ReadingView[]
}

interface RuleKind {
  title: string
  help: string
  /** What the rule's value is: one number, or one for each of these keys. */
  limits: { key?: 'min' | 'max'; label: string; example: string }[]
  /** What the rule begins with, where it is added. */
  first: unknown
}

/** The rules of validity but those of readings, in the order in which they are shown. */
export const ruleKinds: Record<string, RuleKind> = {
  clock_step: {
    title: 'Step of a clock',
    help: 'of a node, forwards or back',
    limits: [{ label: 'At most', example: '100 ms' }],
    first: '100 ms',
  },
  interfering: {
    title: 'Other traffic on the radio',
    help: 'a share of the attempt’s bytes, or a size',
    limits: [{ label: 'At most', example: '5 % or 64 KiB' }],
    first: '5 %',
  },
  battery: {
    title: 'Charge of a node’s batteries',
    help: '',
    limits: [{ key: 'min', label: 'At least', example: '15 %' }],
    first: { min: '15 %' },
  },
  temperature: {
    title: 'Temperature of a node',
    help: 'of its hottest thermal zone',
    limits: [
      { key: 'min', label: 'At least', example: '-20 °C' },
      { key: 'max', label: 'At most', example: '85 °C' },
    ],
    first: { max: '85 °C' },
  },
  position: {
    title: 'Distance that a node moves',
    help: 'from where its part in the run began',
    limits: [{ label: 'At most', example: '25 m' }],
    first: '25 m',
  },
  host: {
    title: 'Time that a busy processor misses',
    help: 'of an attempt, at any node, and at the emulated radio',
    limits: [{ label: 'At most', example: '5 %' }],
    first: '5 %',
  },
}

/** The rules of `valid`; undefined: only the text can say them. */
export function validOf(p: PlanText, v: unknown): ValidView | undefined {
  if (v === undefined || v === null) return { rules: [], readings: [] }
  if (!isPlain(v) || locked(p, ['valid'])) return undefined
  const rules: RuleView[] = []
  for (const [key, kind] of Object.entries(ruleKinds)) {
    if (v[key] === undefined) continue
    const keyed = kind.limits.some((l) => l.key)
    if (keyed ? v[key] !== null && !onlyFlat(v[key]) : !flat(v[key])) return undefined
    const of = keyed ? ((v[key] ?? {}) as Plain) : {}
    rules.push({
      key,
      title: kind.title,
      help: kind.help,
      path: ['valid', key],
      limits: kind.limits.map((l) => ({
        label: l.label,
        example: l.example,
        path: l.key ? ['valid', key, l.key] : ['valid', key],
        value: shown(l.key ? of[l.key] : v[key]),
      })),
    })
  }
  const list = v.telemetry ?? []
  if (!Array.isArray(list) || !list.every(onlyFlat)) return undefined
  const readings = list.map((e: Plain) => ({ reading: shown(e.reading), min: shown(e.min), max: shown(e.max) }))
  return { rules, readings }
}

const sizeOf = (v: ValidView) => v.rules.length + (v.readings.length ? 1 : 0)

/** A rule that the plan does not have yet. */
export function ruleAdded(v: ValidView, key: string): Edit {
  const { first } = ruleKinds[key]!
  return sizeOf(v) ? [['valid', key], first] : [['valid'], { [key]: first }]
}

export function ruleRemoved(v: ValidView, key: string): Edit {
  return [sizeOf(v) > 1 ? ['valid', key] : ['valid'], undefined]
}

/** A limit of a rule; without a value it is taken away, and with its last one the rule. */
export function limitSet(v: ValidView, rule: RuleView, limit: LimitView, value: string): Edit {
  if (value) return [limit.path, typed(value)]
  const others = rule.limits.some((l) => l !== limit && l.value)
  return others ? [limit.path, undefined] : ruleRemoved(v, rule.key)
}

const readings: Path = ['valid', 'telemetry']

export function readingAdded(v: ValidView, reading: string): Edit {
  const entry = { reading, min: 0 }
  return sizeOf(v) ? added(readings, v.readings.length, entry) : [['valid'], { telemetry: [entry] }]
}

export function readingRemoved(v: ValidView, i: number): Edit {
  return v.readings.length > 1 ? removed(readings, v.readings.length, i) : ruleRemoved(v, 'telemetry')
}
