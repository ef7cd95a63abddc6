// What the form shows of a plan's text. What it does not know stays in the
// text, and the form says where.
import { probesOf, validOf, type ProbeView, type ValidView } from './conditions'
import { requiredOf, type RequiredView } from './require'
import { stopOf, type StopView } from './stop'
import { lineOf, locked, type Path, type PlanText } from './text'
import { flat, isPlain, plain, shown, typed, type Plain } from './values'

export interface TreatmentView {
  name: string
  label: string
  protocol: string
  options: Record<string, string>
  completeKnowledge: boolean
  /** The relay processes that it passes, as the text has them. */
  via: unknown[]
  missing: string
  /** Of its packets (RFC 2474): "EF", or a number. */
  dscp: string
  secondRadio: boolean
  line: number
  locked: boolean
}
/** One parameter that a plan varies, or sets, where it has a single value. */
export interface AxisView {
  name: string
  set: string
  values: string[]
  /** Two parameters together, labels, aliases: only the text can say that. */
  inText: boolean
  line: number
}
export interface InText {
  key: string
  what: string
  line: number
}
export const limitKeys = ['connect', 'transfer', 'attempts', 'pause', 'wait', 'horizon'] as const
export interface PlanView {
  name: string
  title: string
  /** undefined: in the text alone. */
  radios: string[] | undefined
  topologies: string[] | undefined
  sizes: string[] | undefined
  treatments: TreatmentView[] | undefined
  sweep: AxisView[] | undefined
  probes: ProbeView[] | undefined
  valid: ValidView | undefined
  required: RequiredView[] | undefined
  stop: StopView | undefined
  iterations: string
  order: string
  seed: string
  /** undefined: in the text alone. */
  limits: Record<(typeof limitKeys)[number], string> | undefined
  control: string
  /** Of the trials' time, with control over the radio: "10 %". */
  controlShare: string
  sampleInterval: string
  capture: boolean
  grouped: boolean
  inText: InText[]
}

function list(v: unknown): string[] | undefined {
  if (v === undefined || v === null) return []
  if (Array.isArray(v)) return v.every(flat) ? v.map(shown) : undefined
  return flat(v) ? [shown(v)] : undefined
}

function count(v: unknown, one: string, many: string): string {
  const n = Array.isArray(v) ? v.length : 1
  return n === 1 ? `1 ${one}` : `${n} ${many}`
}

const tells: Record<string, (v: unknown) => string> = {
  notes: (v) => count(v, 'note', 'notes'),
  groups: (v) =>
    `${count(v, 'group', 'groups')}: ${Array.isArray(v) ? v.map((g) => shown(plain(g).name)).join(', ') : ''}`,
  flows: (v) => `${count(v, 'entry', 'entries')}: what a trial is made of`,
  mixes: (v) => `${count(v, 'mix', 'mixes')} of treatments`,
  probes: (v) => count(v, 'probe', 'probes'),
  valid: (v) => `rules of validity: ${Object.keys(plain(v)).join(', ')}`,
  require: (v) => count(v, 'requirement', 'requirements'),
  stop: () => 'a rule to stop by',
  exclude: (v) => `${count(v, 'combination', 'combinations')} left out`,
  published: (v) => `values of ${shown(plain(v).source) || 'a paper'}`,
  sweep: () => 'parameters that vary together',
  size: () => 'a size for each topology',
  radio: () => 'shared with other places of the text',
  topology: () => 'shared with other places of the text',
  treatments: () => 'shared with other places of the text',
  limits: () => 'shared with other places of the text',
}

export function viewOf(p: PlanText): PlanView {
  const v = plain(p.value)
  const limits = plain(v.limits)
  const free = <T>(path: Path, x: T): T | undefined => (locked(p, path) ? undefined : x)
  const view: PlanView = {
    name: shown(v.name),
    title: shown(v.title),
    radios: free(['radio'], list(v.radio)),
    topologies: free(['topology'], list(v.topology)),
    sizes: free(['size'], list(v.size)),
    treatments: treatments(p, v.treatments),
    sweep: axes(p, v.sweep),
    probes: probesOf(p, v.probes),
    valid: validOf(p, v.valid),
    required: requiredOf(p, v.require),
    stop: stopOf(p, v.stop),
    iterations: shown(v.iterations),
    order: shown(v.order),
    seed: shown(v.seed),
    limits: free(['limits'], Object.fromEntries(limitKeys.map((k) => [k, shown(limits[k])])) as PlanView['limits']),
    control: shown(v.control),
    controlShare: shown(v.control_share),
    sampleInterval: shown(v.sample_interval),
    capture: v.capture === true,
    grouped: Array.isArray(v.groups) && v.groups.length > 0,
    inText: [],
  }
  const own: Record<string, unknown> = {
    radio: view.radios,
    topology: view.topologies,
    size: view.sizes,
    treatments: view.treatments,
    sweep: view.sweep,
    probes: view.probes,
    valid: view.valid,
    require: view.required,
    stop: view.stop,
    limits: view.limits,
  }
  for (const key of Object.keys(tells)) {
    if (v[key] === undefined || (key in own && own[key] !== undefined)) continue
    view.inText.push({ key, what: tells[key]!(v[key]), line: lineOf(p, [key]) })
  }
  return view
}

function treatments(p: PlanText, v: unknown): TreatmentView[] | undefined {
  if (v === undefined || v === null) return []
  if (!Array.isArray(v) || !v.every(isPlain)) return undefined
  return v.map((e: Plain, i) => ({
    name: shown(e.name),
    label: shown(e.label),
    protocol: shown(e.protocol),
    options: Object.fromEntries(Object.entries(plain(e.options)).map(([k, x]) => [k, shown(x)])),
    completeKnowledge: e.complete_knowledge === true,
    via: Array.isArray(e.via) ? e.via : [],
    missing: shown(e.missing),
    dscp: shown(e.dscp),
    secondRadio: e.second_radio === true,
    line: lineOf(p, ['treatments', i]),
    locked:
      locked(p, ['treatments', i, 'name']) ||
      locked(p, ['treatments', i, 'options']) ||
      locked(p, ['treatments', i, 'protocol']),
  }))
}

/** What a treatment passes, for people: "split at the relay". */
export function viaText(via: unknown[]): string {
  return via.map((x) => `${shown(plain(x).protocol)} at the ${shown(plain(x).at)}`).join(', ')
}

function axes(p: PlanText, v: unknown): AxisView[] | undefined {
  if (v === undefined || v === null) return []
  if (!Array.isArray(v)) return undefined
  return v.map((e, i) => {
    const a = plain(e)
    const simple =
      flat(a.set) &&
      Array.isArray(a.values) &&
      a.values.every(flat) &&
      a.labels === undefined &&
      !locked(p, ['sweep', i])
    return {
      name: shown(a.name),
      set: shown(a.set),
      values: simple ? (a.values as unknown[]).map(shown) : [],
      inText: !simple,
      line: lineOf(p, ['sweep', i]),
    }
  })
}

/** The edits that another way of control traffic takes: only over the radio has it a share. */
export function controlEdits(control: string, view: Pick<PlanView, 'controlShare'>): [Path, unknown][] {
  const out: [Path, unknown][] = [[['control'], control]]
  if (control !== 'in-band' && view.controlShare) out.push([['control_share'], undefined])
  return out
}

/** One value as it is, several as a list, none takes the key away. */
export function oneOrMany(values: string[]): unknown {
  return values.length === 0 ? undefined : values.length === 1 ? values[0] : values
}

/** What people write between commas, numbers as numbers. */
export function splitValues(text: string): (string | number)[] {
  return text
    .split(',')
    .map((s) => s.trim())
    .filter(Boolean)
    .map(typed)
}

/** A name that no other has: "tcp", "tcp-2". */
export function freeName(wanted: string, taken: string[]): string {
  const base =
    wanted
      .toLowerCase()
      .replace(/[^a-z0-9-]+/g, '-')
      .replace(/^-+|-+$/g, '')
      .slice(0, 40) || 'plan'
  if (!taken.includes(base)) return base
  for (let n = 2; ; n++) if (!taken.includes(`${base}-${n}`)) return `${base}-${n}`
}

/** What a new plan starts from; the form and CheckPlan lead on. */
export function template(name: string): string {
  return `name: ${name}
radio: prc-117g-anw2c
topology: vip-lot
size: 256 KiB
treatments:
  - {name: tcp-cubic, label: TCP CUBIC, protocol: tcp, options: {congestion: cubic}}
iterations: 10
order: counterbalanced
seed: ${Math.floor(Math.random() * 1e6)}
limits: {connect: 30s, transfer: 5m, attempts: 1}
`
}
