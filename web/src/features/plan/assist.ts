// Help in the editor of a text: completion of keys and values, and what a key means
// under the pointer.
import {
  autocompletion,
  insertCompletionText,
  pickedCompletion,
  startCompletion,
  type Completion,
  type CompletionContext,
  type CompletionResult,
} from '@codemirror/autocomplete'
import { syntaxTree } from '@codemirror/language'
import type { Extension } from '@codemirror/state'
import { EditorView, hoverTooltip } from '@codemirror/view'
import { about, keysAt, schemaAt, wordsAt, type Key, type Language } from './language'
import { gapAt, namesIn, positionAt } from './position'

function element(tag: string, className: string, text = ''): HTMLElement {
  const e = document.createElement(tag)
  if (className) e.className = className
  // What stands between backticks is written as it is in a text.
  text.split('`').forEach((part, i) => {
    if (i % 2) e.append(element('code', '', part))
    else e.append(part)
  })
  return e
}

function card(k: Key): HTMLElement {
  const box = element('div', 'about-key')
  for (const { label, text } of about(k)) {
    const line = element('p', '', text)
    if (label) line.prepend(element('span', 'label', label), ' ')
    box.append(line)
  }
  return box
}

/** Writes a key; its values are listed next. */
function applyKey(view: EditorView, c: Completion, from: number, to: number) {
  const change = insertCompletionText(view.state, `${c.label}: `, from, to)
  view.dispatch({ ...change, annotations: pickedCompletion.of(c) })
  startCompletion(view)
}

function completions(l: Language, context: CompletionContext): CompletionResult | null {
  const text = context.state.doc.toString()
  const gap = gapAt(text, context.pos)
  if (!gap) return null
  const own = namesIn(text)
  const now = text.slice(gap.from, gap.to)
  const parent = gap.steps.slice(0, -1)
  const beside = gap.steps.at(-1)?.beside ?? {}
  const keys = gap.isKey ? keysAt(l, parent).filter((k) => k.name === now || !(k.name in beside)) : []
  const words = gap.isKey ? (gap.alone ? wordsAt(l, parent, own) : []) : wordsAt(l, gap.steps, own)
  // A word that is whole already needs no list, whose Enter would not begin a line.
  if (!context.explicit && (!now || [...keys, ...words].some((x) => x.name === now))) return null
  const options: Completion[] = [
    ...keys.map((k, i) => ({
      label: k.name,
      detail: k.schema['x-value']?.replaceAll('`', ''),
      apply: gap.colon ? undefined : applyKey,
      boost: Math.max(99 - i, -99),
      info: () => card(k),
    })),
    ...words.map((w, i) => ({ label: w.name, detail: w.detail, boost: Math.max(99 - i, -99) })),
  ]
  return { from: gap.from, to: gap.to, options }
}

const looks = EditorView.theme({
  '.cm-tooltip.cm-tooltip-autocomplete > ul': { fontFamily: 'var(--mono)', maxWidth: 'min(480px, 90vw)' },
  '.cm-tooltip.cm-tooltip-autocomplete > ul > li': {
    display: 'flex',
    gap: '12px',
    padding: '3px 8px',
    alignItems: 'baseline',
  },
  '.cm-tooltip.cm-tooltip-autocomplete > ul > li[aria-selected]': {
    backgroundColor: 'var(--run-soft)',
    color: 'var(--text)',
    boxShadow: 'inset 3px 0 var(--accent)',
  },
  '.cm-completionMatchedText': { textDecoration: 'none', fontWeight: '700' },
  '.cm-completionDetail': {
    flex: '1',
    minWidth: '0',
    marginLeft: '0',
    overflow: 'hidden',
    textOverflow: 'ellipsis',
    textAlign: 'right',
    fontFamily: 'system-ui, sans-serif',
    fontStyle: 'normal',
    color: 'var(--muted)',
  },
  '.cm-tooltip.cm-completionInfo': { padding: '0', maxWidth: '340px' },
  '.about-key': { padding: '6px 10px', maxWidth: '380px', fontSize: '13px', lineHeight: '1.4' },
  '.about-key p': { margin: '0 0 4px', overflowWrap: 'anywhere' },
  '.about-key .label': { color: 'var(--muted)' },
  '.about-key code': { fontFamily: 'var(--mono)' },
})

/** Completion and hover with the language that there is at the time. */
export function assist(language: () => Language | undefined): Extension {
  const hover = hoverTooltip(
    (view, at) => {
      const l = language()
      const position = positionAt(syntaxTree(view.state), view.state.doc.toString(), at)
      const name = position?.steps.at(-1)?.key
      if (!l || !position || typeof name !== 'string') return null
      const schema = schemaAt(l, position.steps)
      if (!schema) return null
      const key = keysAt(l, position.steps.slice(0, -1)).find((k) => k.name === name) ?? {
        name,
        schema,
        required: false,
      }
      const create = () => ({ dom: card(key) })
      return { pos: position.from, end: position.to, above: true, create }
    },
    { hideOnChange: true },
  )
  return [
    autocompletion({
      override: [(context) => (language() ? completions(language()!, context) : null)],
      icons: false,
    }),
    hover,
    looks,
  ]
}
