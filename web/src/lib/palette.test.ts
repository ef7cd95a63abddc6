import { expect, it } from 'vitest'
import { looks, toned } from './palette'

it('gives every treatment a look of its own, and the same one again', () => {
  const names = Array.from({ length: 14 }, (_, i) => `t${i}`)
  const a = looks(names)
  const seen = new Set([...a.values()].map((l) => `${l.color} ${l.dash}`))
  expect(seen.size).toBe(names.length)
  expect(looks([...names, 't0', 'new']).get('t3')).toEqual(a.get('t3'))
})

it('has markers with a surface: points are filled, and strokes alone are not drawn', () => {
  for (const l of looks(Array.from({ length: 10 }, (_, i) => `t${i}`)).values())
    if (l.marker.startsWith('path://')) expect(l.marker, l.glyph).toMatch(/Z$/)
})

it('is light on dark ground and dark in the sun', () =>
  expect(['light', 'dark', 'sun'].map((t) => toned('#0072b2', t as 'sun'))).toEqual(['#0072b2', '#6badd2', '#005280']))
