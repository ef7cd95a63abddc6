import { expect, it } from 'vitest'
import { looks } from './palette'

it('gives every treatment a look of its own, and the same one again', () => {
  const names = Array.from({ length: 14 }, (_, i) => `t${i}`)
  const a = looks(names)
  const seen = new Set([...a.values()].map((l) => `${l.color} ${l.dash}`))
  expect(seen.size).toBe(names.length)
  expect(looks([...names, 't0', 'new']).get('t3')).toEqual(a.get('t3'))
})
