import { readFileSync, readdirSync } from 'node:fs'
import { resolve } from 'node:path'
import { describe, expect, test } from 'vitest'
import { distanceToLeg, placeLengths, stationBoxes, textBox, type Box, type Leg, type Point } from './labels'

const folder = resolve(process.cwd(), '../topologies')

interface Place {
  legs: Leg[]
  stations: { at: Point; name: string }[]
}

/** The stations and links of a topology's file on a plane of so many pixels a metre. */
function read(file: string, view: Box): Place | undefined {
  const text = readFileSync(resolve(folder, file), 'utf8')
  const stations = [...text.matchAll(/\{name: (\S+), role: (\w+), latitude: ([-\d.]+), longitude: ([-\d.]+)/g)].map(
    (m) => ({
      name: m[1]!,
      role: m[2]!,
      east: Number(m[4]) * 111_320 * Math.cos((Number(m[3]) * Math.PI) / 180),
      north: Number(m[3]) * 111_320,
    }),
  )
  const links = [...text.matchAll(/between: \[(\w+), (\w+)\]/g)].map((m) => [m[1]!, m[2]!] as const)
  if (!stations.length || !links.length) return undefined
  const range = (xs: number[]) => ({
    mid: (Math.min(...xs) + Math.max(...xs)) / 2,
    wide: Math.max(20, Math.max(...xs) - Math.min(...xs)),
  })
  const e = range(stations.map((s) => s.east))
  const n = range(stations.map((s) => s.north))
  const scale = Math.min((view.width - 148) / e.wide, (view.height - 148) / n.wide)
  const placed = stations.map((s) => ({
    ...s,
    at: { x: view.width / 2 + (s.east - e.mid) * scale, y: view.height / 2 - (s.north - n.mid) * scale },
  }))
  const at = (role: string) => placed.find((s) => s.role === role)!.at
  return {
    stations: placed,
    legs: links.map(([a, b], i) => ({ from: at(a), to: at(b), text: `${193 + i}.6 m` })),
  }
}

describe.each(readdirSync(folder).filter((f) => f.endsWith('.yaml')))('%s', (file) => {
  test.each([
    [320, 340],
    [800, 496],
    [1100, 620],
  ])('every length stands beside its own link, %d × %d', (width, height) => {
    const view = { x: 0, y: 0, width, height }
    const place = read(file, view)
    if (!place) return
    const taken = place.stations.flatMap((s) => stationBoxes(s.at, s.name))
    placeLengths(place.legs, taken, view).forEach((p, i) => {
      const own = distanceToLeg(p, place.legs[i]!)
      for (const other of place.legs.filter((_, k) => k !== i))
        expect(distanceToLeg(p, other), `${place.legs[i]!.text} is nearer to another link`).toBeGreaterThan(own)
      const box = textBox(p, place.legs[i]!.text)
      for (const b of taken.filter((_, k) => k % 2 === 0))
        expect(
          box.x < b.x + b.width && b.x < box.x + box.width && box.y < b.y + b.height && b.y < box.y + box.height,
          'covers a station',
        ).toBe(false)
    })
  })
})
