// What is at a position of a YAML text: the keys and indices that lead there, also in a text
// that is being written. Pure.
import { yamlLanguage } from '@codemirror/lang-yaml'

type Tree = ReturnType<typeof yamlLanguage.parser.parse>
type Node = ReturnType<Tree['resolveInner']>

export interface Step {
  key: string | number
  /** The keys of the same mapping with their values, those that are more than a word as ''. */
  beside: Record<string, string>
}
export interface Position {
  steps: Step[]
  /** The last step is at the position; else the position is in its value. */
  isKey: boolean
  from: number
  to: number
}

function literal(node: Node | null, text: string): string {
  const word =
    node && (/Literal$/.test(node.name) ? node : (node.getChild('Literal') ?? node.getChild('QuotedLiteral')))
  if (!word) return ''
  const written = text.slice(word.from, word.to)
  return word.name === 'QuotedLiteral' ? written.slice(1, -1) : written
}

function entries(mapping: Node | null, text: string): Record<string, string> {
  const out: Record<string, string> = {}
  for (const pair of mapping?.getChildren('Pair') ?? []) {
    const key = pair.getChild('Key')
    const value = pair.lastChild
    out[literal(key, text)] = value && value.name !== 'Key' ? literal(value, text) : ''
  }
  return out
}

function indexOf(item: Node): number {
  let n = 0
  for (let at = item.prevSibling; at; at = at.prevSibling) if (at.name === 'Item') n++
  return n
}

/** The position of a word; undefined where there is none. */
export function positionAt(tree: Tree, text: string, at: number): Position | undefined {
  const word = tree.resolveInner(at, 1)
  if (!/^(Quoted)?Literal$/.test(word.name)) return undefined
  const steps: Step[] = []
  let isKey = false
  for (let n = word; n.parent; n = n.parent) {
    if (n.name === 'Item') steps.unshift({ key: indexOf(n), beside: {} })
    if (n.parent.name !== 'Pair') continue
    if (n.name === 'Key' && !steps.length) isKey = true
    steps.unshift({ key: literal(n.parent.getChild('Key'), text), beside: entries(n.parent.parent, text) })
  }
  return { steps, isKey, from: word.from, to: word.to }
}

export interface Gap extends Position {
  /** Nothing else is in the mapping: a value may be written there instead of a key. */
  alone: boolean
  /** A colon follows. */
  colon: boolean
}

const wordStart = /[^\s,{}[\]:#"']*$/
const wordEnd = /^[^\s,{}[\]:#"']*/
const filler = '¤'

/**
 * The position at which a word is written or can be: what the text would be with a word
 * there, as a text that is being written is mostly not YAML yet.
 */
export function gapAt(text: string, at: number): Gap | undefined {
  const start = text.lastIndexOf('\n', at - 1) + 1
  const end = text.indexOf('\n', at) < 0 ? text.length : text.indexOf('\n', at)
  const from = at - wordStart.exec(text.slice(start, at))![0].length
  const to = at + wordEnd.exec(text.slice(at, end))![0].length
  const before = text.slice(start, from)
  const after = text.slice(to, end)
  const leads = /^\s*(- +)*$/.test(before)
  if (/(^|\s)#/.test(before) || !(leads || /(:\s+|[,{[]\s*)$/.test(before))) return undefined
  if (!/^\s*($|[:,}\]#])/.test(after)) return undefined
  const colon = /^\s*:(\s|$)/.test(after)
  const whole = text.slice(0, from) + (leads && !colon ? `${filler}: ${filler}` : filler) + text.slice(to)
  const position = positionAt(yamlLanguage.parser.parse(whole), whole, from)
  if (!position) return undefined
  const last = position.steps.at(-1)
  const alone = position.isKey && !colon && !/\{\s*$/.test(before) && Object.keys(last!.beside).length === 1
  return { ...position, from, to, alone, colon }
}

/** The names in lists such as treatments: by the key of the list, wherever it stands. */
export function namesIn(text: string): Record<string, string[]> {
  const out: Record<string, string[]> = {}
  const tree = yamlLanguage.parser.parse(text)
  tree.iterate({
    enter(n) {
      if (n.name !== 'Pair' || literal(n.node.getChild('Key'), text) !== 'name') return
      const steps = positionAt(tree, text, n.from)?.steps ?? []
      const list = steps.at(-3)?.key
      if (typeof list === 'string') (out[list] ??= []).push(steps.at(-1)!.beside.name!)
    },
  })
  return out
}
