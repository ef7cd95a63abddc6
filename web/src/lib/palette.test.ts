import { expect, it } from 'vitest'
import table from './looks.json'
import { looks, toned } from './palette'

const names = (n: number) => Array.from({ length: n }, (_, i) => `t${i}`)
const all = (n: number) => [...looks(names(n)).values()]

it('gives every treatment a look of its own, and the same one again', () => {
  const seen = new Set(all(100).map((l) => `${l.color} ${l.marker}`))
  expect(seen.size).toBe(100)
  const a = looks(names(14))
  expect(looks([...names(14), 't0', 'new']).get('t3')).toEqual(a.get('t3'))
})

it('has the colours, markers and dashes of exported figures', () => {
  expect(all(10).map((l) => [l.color, l.glyph, l.dash])).toEqual(
    table.markers.map((m, i) => [table.colors[i], m.glyph, 'solid']),
  )
  // The rule of lookOf in look.go.
  expect(
    all(22)
      .map((l) => [l.color, l.glyph, l.dash])
      .slice(10),
  ).toEqual(
    Array.from({ length: 12 }, (_, k) => {
      const round = k < 10 ? 1 : 2
      return [table.colors[k % 10], table.markers[(k + round) % 10]!.glyph, table.dashes[round]]
    }),
  )
})

it('has closed markers with a surface: points are filled, and strokes alone are not drawn', () => {
  const corners = `M-${table.box},-${table.box}M${table.box},${table.box}M`
  for (const [i, l] of all(10).entries()) {
    const { points } = table.markers[i]!
    if (!points) expect([l.marker, l.size], l.glyph).toEqual(['circle', 1])
    else {
      expect(l.marker, l.glyph).toBe(`path://${corners}${points.split(' ').join('L')}Z`)
      expect(l.size * table.radius, l.glyph).toBe(table.box)
    }
  }
})

it('is light on dark ground and dark in the sun', () =>
  expect(['light', 'dark', 'sun'].map((t) => toned('#0072b2', t as 'sun'))).toEqual(['#0072b2', '#6badd2', '#005280']))
