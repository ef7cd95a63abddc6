import { yamlLanguage } from '@codemirror/lang-yaml'
import { expect, it } from 'vitest'
import { gapAt, namesIn, positionAt } from './position'

/** The gap at the mark "|", as a path; "+" where a key stands, "?" where a value may stand instead. */
function gap(marked: string): string {
  const at = marked.indexOf('|')
  const g = gapAt(marked.replace('|', ''), at)
  if (!g) return 'none'
  const way = g.steps.map((s) => s.key)
  if (!g.isKey) return way.join('.')
  return `${way.slice(0, -1).join('.')}+${g.alone ? '?' : ''}`
}

it('finds where a word is written', () => {
  const cases: [string, string][] = [
    ['|', '+?'],
    ['name: a\nord|\nseed: 1\n', '+'],
    ['name: a\nlimits:\n  |\nseed: 1\n', 'limits+?'],
    ['limits:\n  connect: 1s\n  at|\nseed: 1\n', 'limits+'],
    ['limits: {|}', 'limits+'],
    ['limits: {connect: 1s, |', 'limits+'],
    ['treatments:\n  - {name: a, proto|\n  - {name: b}\nseed: 1\n', 'treatments.0+'],
    ['treatments:\n  - {name: a}\n  - name: b\n    |\n', 'treatments.1+'],
    ['treatments:\n- {name: a}\n- |\n', 'treatments.1+?'],
    ['treatments:\n  - {name: a,\n     |}\n', 'treatments.0+'],
    ['treatments: [{name: a, protocol: t|}]', 'treatments.0.protocol'],
    ['order: |\nseed: 1\n', 'order'],
    ['order: fi|xed # or not\n', 'order'],
    ['ord|er: fixed\n', '+'],
    ['radio: [a, |]', 'radio.1'],
    ['capture: true\nradio: [pr|', 'radio.0+?'],
    ['radio: [a, |\nseed: 1\n', 'radio.1+?'],
    ['radio:\n  - a\n  - |', 'radio.1+?'],
    ['size: 256 K|', 'none'],
    ['name: a # |', 'none'],
    ['notes: ["a |"]', 'none'],
    ['order:|', 'none'],
    ['notes:\n  - |\n', 'notes.0+?'],
  ]
  expect(cases.map(([text]) => [text, gap(text)])).toEqual(cases)
})

it('has the word, what follows it, and what stands beside it', () => {
  const g = gapAt('treatments: [{name: a, pro: tcp, options: {}}]', 25)!
  expect([g.from, g.to, g.colon]).toEqual([23, 26, true])
  expect(Object.keys(g.steps.at(-1)!.beside)).toEqual(['name', '¤', 'options'])
  const options = gapAt('treatments: [{protocol: "tcp", options: {m}}]', 42)!
  expect(options.steps.at(-2)!.beside).toEqual({ protocol: 'tcp', options: '' })
})

it('finds the position of what is written', () => {
  const text = 'limits: &l {connect: 10s}\nnotes: [a, "b c"]\n'
  const tree = yamlLanguage.parser.parse(text)
  const at = (word: string) => {
    const p = positionAt(tree, text, text.indexOf(word) + 1)
    return p && [p.steps.map((s) => s.key).join('.'), p.isKey, text.slice(p.from, p.to)]
  }
  expect(at('limits')).toEqual(['limits', true, 'limits'])
  expect(at('connect')).toEqual(['limits.connect', true, 'connect'])
  expect(at('10s')).toEqual(['limits.connect', false, '10s'])
  expect(at('b c')).toEqual(['notes.1', false, '"b c"'])
  expect(at('{conn')?.[0]).toBe('limits.connect')
  expect(positionAt(tree, text, text.length)).toBeUndefined()
})

it('collects the names of lists, in a text that does not parse too', () => {
  expect(
    namesIn(
      'name: p\ntreatments:\n  - {name: a, pro\n  - name: "b"\nmixes: [{name: m, flows: [{treatment: a}]}]\norder: [',
    ),
  ).toMatchObject({ mixes: ['m'] })
  expect(namesIn('treatments:\n  - {name: a, protocol: tcp}\n  - name: "b"\nsize: ')).toEqual({
    treatments: ['a', 'b'],
  })
})
