// What documents of a kind may hold, as the orchestrator declares it: a walk through its
// JSON Schema. Pure.
import type { InjectionKey, Ref } from 'vue'
import { expects, type DriverOption } from './drivers'
import type { Step } from './position'
import { stepsOf } from './problems'
import { inFlow } from './text'

export interface Schema {
  description?: string
  default?: unknown
  examples?: unknown[]
  enum?: string[]
  type?: string | string[]
  $ref?: string
  $defs?: Record<string, Schema>
  anyOf?: Schema[]
  items?: Schema
  properties?: Record<string, Schema>
  additionalProperties?: Schema | boolean
  required?: string[]
  'x-value'?: string
  'x-unset'?: string
  'x-names'?: string
}
export interface Word {
  name: string
  detail?: string
}
export interface Language {
  schema: Schema
  /** The names of a kind of thing that exists beside the text, such as radios. */
  names: (what: string) => Word[]
  options: (driver: string) => DriverOption[] | undefined
}
/** The language of the plan that a form is of. */
export const planLanguage: InjectionKey<Readonly<Ref<Language | undefined>>> = Symbol('language of plans')

/** The lists of a text whose entries' names are of a kind of thing. */
const named: Record<string, string[]> = { treatment: ['treatments', 'mixes'], group: ['groups'], axis: ['sweep'] }

/** What a value may be: the alternatives, without references. */
function forms(root: Schema, s: Schema): Schema[] {
  if (s.anyOf) return s.anyOf.flatMap((f) => forms(root, f))
  const name = s.$ref?.replace('#/$defs/', '')
  return [name ? (root.$defs?.[name] ?? {}) : s]
}

function child(root: Schema, s: Schema, key: string | number): Schema | undefined {
  for (const f of forms(root, s)) {
    const rest = typeof f.additionalProperties === 'object' ? f.additionalProperties : undefined
    const found = typeof key === 'number' ? f.items : (f.properties?.[key] ?? rest)
    if (found) return found
  }
  return undefined
}

function optionSchema(o: DriverOption): Schema {
  return {
    description: o.help,
    default: o.default,
    enum: o.choices,
    type: o.type === 'bool' ? 'boolean' : 'string',
    'x-value': o.choices?.join(', ') ?? (o.type === 'bool' ? 'true or false' : expects(o)),
  }
}

/** What is declared of the value that the steps lead to. */
export function schemaAt(l: Language, steps: Step[]): Schema | undefined {
  let at: Schema | undefined = l.schema
  for (const s of steps) {
    at = at && child(l.schema, at, s.key)
    const options: DriverOption[] | undefined =
      at && s.key === 'options' && s.beside.protocol ? l.options(s.beside.protocol) : undefined
    if (options)
      at = { ...at, $ref: undefined, properties: Object.fromEntries(options.map((o) => [o.name, optionSchema(o)])) }
  }
  return at
}

/** The same of a path as problems name it: "limits.connect". */
export function schemaOf(l: Language | undefined, path: string): Schema | undefined {
  return (
    l &&
    schemaAt(
      l,
      stepsOf(path).map((key) => ({ key, beside: {} })),
    )
  )
}

export interface Key {
  name: string
  schema: Schema
  required: boolean
}

/** The keys of the mapping that the steps lead to, required ones first. */
export function keysAt(l: Language, steps: Step[]): Key[] {
  const at = schemaAt(l, steps)
  const all = (at ? forms(l.schema, at) : []).flatMap((f) =>
    Object.entries(f.properties ?? {}).map(([name, schema]) => ({
      name,
      schema,
      required: f.required?.includes(name) ?? false,
    })),
  )
  return [...all.filter((k) => k.required), ...all.filter((k) => !k.required)]
}

/** The words that may stand as the value that the steps lead to; own has the names in the text by their lists. */
export function wordsAt(l: Language, steps: Step[], own: Record<string, string[]>): Word[] {
  const at = schemaAt(l, steps)
  const words = (at ? forms(l.schema, at) : []).flatMap((f): Word[] => {
    if (f.enum) return f.enum.map((name) => ({ name }))
    if (f.type === 'boolean') return [{ name: 'true' }, { name: 'false' }]
    const kinds = f['x-names']?.split(' or ') ?? []
    return kinds.flatMap((what) => [
      ...l.names(what),
      ...(named[what] ?? []).flatMap((list) => own[list] ?? []).map((name) => ({ name })),
    ])
  })
  return words.map((w) => (w.name === String(at?.default) ? { ...w, detail: 'default' } : w))
}

/** What people are told of a key, line by line: a label and a text. */
export function about(k: Key): { label: string; text: string }[] {
  const { schema: s, name } = k
  const [example] = s.examples ?? []
  return [
    { label: '', text: s.description ?? '' },
    { label: 'Value', text: s['x-value'] ?? '' },
    s.default === undefined
      ? { label: 'Without it', text: s['x-unset'] ?? (k.required ? 'the plan is refused: the key is required' : '') }
      : { label: 'Default', text: String(s.default) },
    { label: 'Example', text: example === undefined ? '' : `\`${name}: ${inFlow(example)}\`` },
  ].filter((line) => line.text)
}
