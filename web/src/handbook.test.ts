// The script of the handbook (tools/handbook), which no build of the pages has a part in.
import { readFileSync } from 'node:fs'
import { beforeEach, expect, test, vi } from 'vitest'

const script = readFileSync('../tools/handbook/assets/handbook.js', 'utf8')

type Heading = [href: string, heading: string, title: string]
const headings: Heading[] = [
  ['index.html#linktrial', 'Linktrial', 'Linktrial'],
  ['docs/plans.html#plans', 'Plans', 'Plans'],
  ['docs/plans.html#a-rule-to-stop-by', 'A rule to stop by', 'Plans'],
  ['docs/radios.html#b', '<b>bold</b>', 'Radios'],
]

function open(narrow = false, list = headings) {
  document.body.dataset.root = '../'
  document.body.innerHTML = `<nav>
    <search hidden><input id="Words" /><p id="Count"></p><ol id="Found"></ol></search>
    <details open><ul><li><a href="#" aria-current="page">Plans</a></li></ul></details>
  </nav>`
  vi.stubGlobal('matchMedia', () => ({ matches: narrow }))
  vi.stubGlobal('linktrialHeadings', list)
  new Function(script)()
  document.dispatchEvent(new Event('DOMContentLoaded'))
}
function search(words: string) {
  const input = document.querySelector<HTMLInputElement>('#Words')!
  input.value = words
  input.dispatchEvent(new Event('input'))
  return {
    count: document.getElementById('Count')!.textContent,
    found: [...document.querySelectorAll('#Found li')].map((li) => li.textContent),
    links: [...document.querySelectorAll('#Found a')].map((a) => a.getAttribute('href')),
  }
}

beforeEach(() => {
  localStorage.clear()
  delete document.documentElement.dataset.theme
})

test('the search has the headings with all words, in any case, also those of the document', () => {
  open()
  expect(document.querySelector('search')!.hidden).toBe(false)
  expect(search('STOP plans')).toEqual({
    count: '1 heading:',
    found: ['A rule to stop by Plans'],
    links: ['../docs/plans.html#a-rule-to-stop-by'],
  })
  expect(search('plans').found).toEqual(['Plans', 'A rule to stop by Plans'])
  expect(search('nothing like it')).toEqual({ count: 'No heading has all of these words.', found: [], links: [] })
  expect(search('  ')).toEqual({ count: '', found: [], links: [] })
})

test('a heading is text, whatever it has', () => {
  open()
  expect(search('bold').found).toEqual(['<b>bold</b> Radios'])
  expect(document.querySelector('#Found b')).toBeNull()
})

test('of many headings the first are there, with their number', () => {
  open(
    false,
    Array.from({ length: 31 }, (_, i): Heading => [`x.html#${i}`, `Heading ${i}`, 'X']),
  )
  const many = search('heading')
  expect(many.count).toBe('The first 30 of 31 headings:')
  expect(many.found).toHaveLength(30)
})

test('the contents are closed on a phone, and open else', () => {
  open(true)
  expect(document.querySelector('details')!.open).toBe(false)
  open(false)
  expect(document.querySelector('details')!.open).toBe(true)
})

test('the theme is the one chosen on the pages; what is none is left to the system', () => {
  localStorage.setItem('linktrial-theme', 'sun')
  open()
  expect(document.documentElement.dataset.theme).toBe('sun')
  delete document.documentElement.dataset.theme
  localStorage.setItem('linktrial-theme', 'system')
  open()
  expect(document.documentElement.dataset.theme).toBeUndefined()
})
