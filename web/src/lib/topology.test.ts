import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import {
  distance,
  elevationKnown,
  fromPlane,
  middleOf,
  movedYaml,
  roundLength,
  toPlane,
  way,
  type Topology,
} from './topology'

const text = `name: vip-lot
title: VIP Lot
source: "breedy-2015"
# Positions are constructed.
stations:
  - {name: trailer, role: server, latitude: 39.03, longitude: -76.96, elevation: unknown}
  - {name: south-lot, role: relay, latitude: 39.0281549, longitude: -76.96, elevation: 12 m}
  - {name: vip-lot, role: client, latitude: 39.0281549, longitude: -76.9589057, elevation: unknown}
links:
  - between: [client, relay]
    distance: 310.13 ft
    source: "inferred"
  - between: [relay, server]
    distance: 673.1 ft
    source: "section V"
`
const topology: Topology = {
  name: 'vip-lot',
  title: 'VIP Lot',
  source: 'breedy-2015',
  stations: [
    { name: 'trailer', role: 'server', latitude: 39.03, longitude: -76.96, elevation: 0 },
    { name: 'south-lot', role: 'relay', latitude: 39.0281549, longitude: -76.96, elevation: 12 },
    { name: 'vip-lot', role: 'client', latitude: 39.0281549, longitude: -76.9589057, elevation: 0 },
  ],
  links: [
    { a: 'client', b: 'relay', distance_metres: 94.5, source: 'inferred' },
    { a: 'relay', b: 'server', distance_metres: 205.2, source: 'section V' },
  ],
  notes: ['Elevation unknown, and given as 0 m: trailer, vip-lot.'],
}

describe('topology', () => {
  it('measures as the paper: 310.13 ft and 673.1 ft', () => {
    const [server, relay, client] = topology.stations as [
      Topology['stations'][0],
      Topology['stations'][0],
      Topology['stations'][0],
    ]
    expect(distance(client, relay) / 0.3048).toBeCloseTo(310.13, 0)
    expect(distance(relay, server) / 0.3048).toBeCloseTo(673.1, 0)
  })
  it('goes to the plane and back', () => {
    const mid = middleOf(topology.stations)
    for (const s of topology.stations) {
      const back = fromPlane(toPlane(s, mid), mid)
      expect(back.latitude).toBeCloseTo(s.latitude, 9)
      expect(back.longitude).toBeCloseTo(s.longitude, 9)
    }
  })
  it('knows which elevations are unknown', () => {
    expect(elevationKnown(topology, 'south-lot')).toBe(true)
    expect(elevationKnown(topology, 'vip-lot')).toBe(false)
  })
  it('finds the way over the relay', () =>
    expect(way(topology).map((s) => s.role)).toEqual(['client', 'relay', 'server']))
  it.each([
    [7, 5],
    [1, 1],
    [249, 200],
    [999, 500],
    [0.3, 0.2],
  ])('rounds %d to %d', (most, length) => expect(roundLength(most)).toBeCloseTo(length, 9))
  it('writes moved stations into the text, and keeps the rest', () => {
    const moved = structuredClone(topology)
    moved.stations[2]!.latitude += 0.001
    const out = movedYaml(text, moved, topology, 'vip-lot-2', 'VIP Lot, moved')
    expect(out).toContain('# Positions are constructed.')
    const t = parse(out)
    expect(t.name).toBe('vip-lot-2')
    expect(t.stations[2].latitude).toBeCloseTo(39.0291549, 7)
    expect(t.stations[1].elevation).toBe('12 m')
    expect(t.links[0].distance).toBeUndefined()
    expect(t.links[1].distance).toBe('673.1 ft')
  })
})
