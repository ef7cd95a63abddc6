// A plan's text and edits to it. The text is the truth: an edit changes the
// place that it is about and leaves every other byte as the author wrote it,
// comments, order and spaces included.
import type { Document, Node, Pair } from 'yaml'
import { isAlias, isCollection, isMap, isNode, isScalar, isSeq, LineCounter, parseDocument, visit } from 'yaml'

export type Path = readonly (string | number)[]
export interface TextError {
  line: number
  column: number
  message: string
}
export interface PlanText {
  text: string
  doc: Document
  /** What keeps the text from being read as YAML at all. */
  errors: TextError[]
  lines: LineCounter
  /** As plain values, integers as bigint: seeds go up to 2^64. */
  value: unknown
}

/** The keys of a plan in the order in which plans are written. */
export const keys = [
  'name',
  'title',
  'notes',
  'radio',
  'topology',
  'size',
  'sweep',
  'exclude',
  'treatments',
  'flows',
  'mixes',
  'probes',
  'groups',
  'iterations',
  'stop',
  'order',
  'seed',
  'limits',
  'valid',
  'require',
  'control',
  'control_share',
  'sample_interval',
  'capture',
  'published',
] as const

const reading = { intAsBigInt: true, prettyErrors: false, merge: false } as const

export function readText(text: string): PlanText {
  const lines = new LineCounter()
  const doc = parseDocument(text, { ...reading, lineCounter: lines })
  const errors = doc.errors.map((e) => {
    const at = lines.linePos(e.pos[0])
    return { line: at.line, column: at.col, message: e.message }
  })
  if (!errors.length && doc.contents !== null && !isMap(doc.contents))
    errors.push({ line: 1, column: 1, message: 'A plan is a list of keys and values, such as "name: quickstart".' })
  let value: unknown
  if (!errors.length) {
    try {
      value = doc.toJS() ?? {}
    } catch (e) {
      errors.push({ line: 1, column: 1, message: e instanceof Error ? e.message : String(e) })
    }
  }
  return { text, doc, errors, lines, value }
}

/** The line that a path starts at, from 1; 0 where there is nothing. */
export function lineOf(p: PlanText, path: Path): number {
  const parent = path.length > 1 ? p.doc.getIn(path.slice(0, -1), true) : p.doc.contents
  const last = path[path.length - 1]
  const pair = isMap(parent) ? parent.items.find((i) => isScalar(i.key) && i.key.value === last) : undefined
  const node = pair ? pair.key : p.doc.getIn(path, true)
  return isNode(node) && node.range ? p.lines.linePos(node.range[0]).line : 0
}

/**
 * Whether a form may change a path: what is shared by an anchor, or is an
 * alias, would change in places that the form does not show.
 */
export function locked(p: PlanText, path: Path): boolean {
  let at: unknown = p.doc.contents
  for (const step of path) {
    if (isAlias(at)) return true
    if (!isCollection(at)) return false
    at = at.get(step, true)
  }
  if (!isNode(at)) return false
  let shared = false
  visit(at, {
    Node: (_, n) => {
      if (isAlias(n) || ('anchor' in n && n.anchor)) shared = true
      return shared ? visit.BREAK : undefined
    },
  })
  return shared
}

/** The text with one value changed; undefined takes the key or the entry away. */
export function edit(text: string, path: Path, value: unknown): string {
  const p = readText(text)
  if (p.errors.length) throw new Error(`line ${p.errors[0]!.line}: ${p.errors[0]!.message}`)
  const old = p.doc.getIn(path, true)
  const inLine =
    (isScalar(old) && old.type !== 'BLOCK_LITERAL' && old.type !== 'BLOCK_FOLDED') || (isCollection(old) && old.flow)
  if (value !== undefined && inLine && old.range && old.range[1] > old.range[0])
    return splice(text, old.range[0], old.range[1], inFlow(value))
  return restructure(p, path, value)
}

function splice(text: string, from: number, to: number, by: string): string {
  return text.slice(0, from) + by + text.slice(to)
}

// A string that reads as something else, or has characters that mean something
// in a flow collection, is quoted; a JSON string is a YAML one.
function scalar(value: unknown): string {
  if (typeof value !== 'string') return String(value)
  const plain = /^[\p{L}\d][\p{L}\d _.+/()%-]*$/u.test(value) && value.trim() === value
  return plain && typeof readText(`k: ${value}`).doc.get('k') === 'string' ? value : JSON.stringify(value)
}

/** A value as YAML in one line. */
export function inFlow(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(inFlow).join(', ')}]`
  if (value !== null && typeof value === 'object')
    return `{${Object.entries(value)
      .map(([k, v]) => `${scalar(k)}: ${inFlow(v)}`)
      .join(', ')}}`
  return scalar(value)
}

/** The text with an entry of a list in another place. */
export function move(text: string, path: Path, from: number, to: number): string {
  const p = readText(text)
  const list = p.doc.getIn(path, true)
  if (p.errors.length || !isSeq(list) || !list.items[from] || !list.items[to]) return text
  return rewrite(p, path[0], () => {
    // What stands above the first entry is read as the list's own comment.
    const first = list.items[0]
    if (list.commentBefore && isNode(first) && !first.commentBefore) {
      first.commentBefore = list.commentBefore
      list.commentBefore = null
    }
    list.items.splice(to, 0, ...list.items.splice(from, 1))
  })
}

function restructure(p: PlanText, path: Path, value: unknown): string {
  const { doc } = p
  if (value === undefined) return rewrite(p, path[0], () => doc.deleteIn(path))
  return rewrite(p, path[0], () => {
    if (doc.contents === null) doc.contents = doc.createNode({}) as never
    const node = doc.createNode(value)
    style(node, path.length === 1, siblingFlow(doc, path.slice(0, -1)))
    if (path.length === 1) {
      place(doc, String(path[0]), node)
      return
    }
    // What is missing on the way: as short as the rest of it.
    for (let i = 1; i < path.length; i++) {
      const way = path.slice(0, i)
      if (isCollection(doc.getIn(way, true))) continue
      const made = doc.createNode(typeof path[i] === 'number' ? [] : {})
      // A list of mappings goes line by line.
      made.flow = !(i === 1 && isSeq(made) && i === path.length - 1 && isMap(node))
      if (i === 1) place(doc, String(path[0]), made)
      else doc.setIn(way, made)
    }
    doc.setIn(path, node)
  })
}

// Of what is written anew after a change, only the top-level entry that the
// change is in is taken into the text.
function rewrite(p: PlanText, top: unknown, change: () => void): string {
  const { doc, text } = p
  const old = pairOf(doc, top)
  const region = old && regionOf(old)
  change()
  const whole = write(p)
  const after = readText(whole)
  const fresh = pairOf(after.doc, top)
  const part = fresh ? whole.slice(...regionOf(fresh)) : ''
  let out: string
  if (region) out = splice(text, region[0], region[1], part)
  else {
    const before = previous(p, String(top))
    const at = before ? before[1] : start(text, doc)
    const glue = at > 0 && text[at - 1] !== '\n' ? '\n' : ''
    out = splice(text, at, at, glue + (part.endsWith('\n') ? part : `${part}\n`))
  }
  return same(readText(out), after) ? out : whole
}

function pairOf(doc: Document, key: unknown): Pair<Node, Node | null> | undefined {
  if (!isMap(doc.contents)) return undefined
  return doc.contents.items.find((i) => isScalar(i.key) && i.key.value === key) as Pair<Node, Node | null> | undefined
}

function regionOf(pair: Pair<Node, Node | null>): [number, number] {
  return [pair.key.range![0], pair.value?.range?.[2] ?? pair.key.range![2]]
}

// Where a new top-level key goes: after the last one that plans write before it.
function previous(p: PlanText, key: string): [number, number] | undefined {
  const fresh = readText(p.text)
  if (!isMap(fresh.doc.contents)) return undefined
  const rank = (keys as readonly string[]).indexOf(key)
  let best: [number, number] | undefined
  for (const i of fresh.doc.contents.items as Pair<Node, Node | null>[]) {
    const r = isScalar(i.key) ? (keys as readonly string[]).indexOf(String(i.key.value)) : -1
    if (r < rank) best = regionOf(i)
  }
  return best
}

function start(text: string, doc: Document): number {
  const first = isMap(doc.contents)
    ? (doc.contents.items.find((i) => isNode(i.key) && i.key.range)?.key as Node | undefined)
    : undefined
  return first?.range?.[0] ?? text.length
}

function place(doc: Document, key: string, node: Node) {
  const map = doc.contents
  if (!isMap(map)) return
  if (map.has(key)) {
    map.set(key, node)
    return
  }
  const rank = (keys as readonly string[]).indexOf(key)
  let at = 0
  map.items.forEach((i, n) => {
    const r = isScalar(i.key) ? (keys as readonly string[]).indexOf(String(i.key.value)) : -1
    if (r < rank) at = n + 1
  })
  map.items.splice(at, 0, doc.createPair(key, node))
}

// Entries look like their siblings; without any, lists of mappings go line by
// line and everything below in one line.
function siblingFlow(doc: Document, parents: Path): boolean | undefined {
  const parent = parents.length ? doc.getIn(parents, true) : undefined
  if (isCollection(parent) && parent.flow) return true
  if (!isSeq(parent)) return undefined
  const last = parent.items.findLast(isCollection)
  return last ? !!last.flow : undefined
}

function style(node: Node, top: boolean, flow: boolean | undefined) {
  if (!isCollection(node)) return
  if (top && isSeq(node) && node.items.length && node.items.every(isMap)) {
    node.flow = false
    for (const i of node.items) (i as { flow?: boolean }).flow = true
    return
  }
  node.flow = flow ?? true
}

function write(p: PlanText): string {
  // The author's way to indent: "- " under its key, or to the right of it.
  const indentSeq = !/^[a-z_]+:[^\n]*\n- /m.test(p.text)
  return p.doc.toString({ lineWidth: 0, flowCollectionPadding: /\{ /.test(p.text), indentSeq })
}

function same(a: PlanText, b: PlanText): boolean {
  if (a.errors.length || b.errors.length) return false
  const plain = (v: unknown) => JSON.stringify(v, (_, x: unknown) => (typeof x === 'bigint' ? `${x}n` : x))
  const sorted = (v: unknown) =>
    v && typeof v === 'object' ? Object.fromEntries(Object.entries(v).sort(([x], [y]) => (x < y ? -1 : 1))) : v
  return plain(sorted(a.value)) === plain(sorted(b.value))
}
