import { expect, test } from 'vitest'
import {
  ability,
  type Abilities,
  bellLabel,
  bellText,
  idOf,
  merged,
  newest,
  ofKind,
  ownPath,
  unseenCount,
} from './model'

const ids = (...all: number[]) => all.map((n) => ({ id: BigInt(n) }))

test('lists are put together newest first, each notification once', () => {
  expect(merged(ids(3, 1), ids(2, 3, 10)).map((n) => Number(n.id))).toEqual([10, 3, 2, 1])
  expect(merged([{ id: 1n, a: 'new' }], [{ id: 1n, a: 'old' }])).toEqual([{ id: 1n, a: 'new' }])
  expect(newest(ids(2, 10, 9))).toBe(10n)
  expect(newest([])).toBe(0n)
})

test('a kind filters, none leaves all', () => {
  const all = [{ kind: 'run-ended' }, { kind: 'run-failed' }, { kind: 'run-ended' }]
  expect(ofKind(all, 'run-ended')).toHaveLength(2)
  expect(ofKind(all, 'run-failed')).toHaveLength(1)
  expect(ofKind(all, '')).toEqual(all)
  expect(ofKind(all, 'no-such')).toEqual([])
})

test('the bell counts what came after the last one that was seen', () => {
  expect(unseenCount(ids(5, 4, 3), 3n)).toBe(2)
  expect(unseenCount(ids(5, 4, 3), 0n)).toBe(3)
  expect(unseenCount(ids(5, 4, 3), 9n)).toBe(0)
  expect([0, 1, 99, 100, 250].map(bellText)).toEqual(['', '1', '99', '99+', '99+'])
  expect([0, 3].map(bellLabel)).toEqual(['Notifications', 'Notifications, 3 not seen yet'])
})

test('what this browser keeps may be anything', () => {
  expect(['12', '', 'x', '-1', '1.5', '9'.repeat(30)].map(idOf)).toEqual([12n, 0n, 0n, 0n, 0n, 0n])
})

test.each(['/runs/abcd', '/', '/runs/abcd?run=abcd-1&trial=3', '/fleet#a', '/plans/a%20b'])('%s is a page', (path) => {
  expect(ownPath(path)).toBe(path)
})
test.each([
  ...['', 'runs', 'https://elsewhere.example/', '//elsewhere.example', '/\\elsewhere.example', 'javascript:alert(1)'],
  ...['/a//b', '/..//elsewhere.example', '/./x', '/a b', '/a\nb', '/\t/elsewhere.example', '/a\u0000', '/a\\b'],
])('%j leads nowhere', (path) => {
  expect(ownPath(path)).toBe('')
})

const can: Abilities = { secure: true, api: true, permission: 'granted', on: true, refused: false }
test('a browser says whether it shows notifications, and what to do where it cannot', () => {
  const of = (more: Partial<Abilities>) => ability({ ...can, ...more })
  expect(of({}).state).toBe('on')
  expect(of({ on: false }).state).toBe('off')
  expect(of({ on: true, permission: 'default' }).state).toBe('off')
  const impossible: [Partial<Abilities>, string][] = [
    [{ secure: false, permission: 'denied' }, 'https address'],
    [{ api: false }, 'another one'],
    [{ permission: 'denied' }, 'settings for this site'],
    [{ refused: true }, 'on a computer'],
  ]
  for (const [more, advice] of impossible) {
    expect(of(more).state, advice).toBe('impossible')
    expect(of(more).text).toContain(advice)
  }
})
