import { expect, it } from 'vitest'
import { differing } from './diff'

it('names the lines that differ', () => {
  expect(differing('a\nb\nc', 'a\nb\nc')).toEqual([])
  expect(differing('a\nb\nc\nd', 'a\nx\nc\nd')).toEqual([
    { whose: 'theirs', text: 'b' },
    { whose: 'mine', text: 'x' },
  ])
  expect(differing('1\na\n2\nb\n3', '1\n2\nb2\n3\n4').map((l) => `${l.whose} ${l.text}`)).toEqual([
    'theirs a',
    'theirs b',
    'mine b2',
    'mine 4',
  ])
  expect(differing('', 'a')).toEqual([
    { whose: 'theirs', text: '' },
    { whose: 'mine', text: 'a' },
  ])
})

it('gives up matching very long texts', () => {
  const long = (x: string) => Array.from({ length: 700 }, (_, i) => `${x}${i}`).join('\n')
  expect(differing(long('a'), long('b'))).toHaveLength(1400)
})
