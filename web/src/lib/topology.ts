// Topologies on a plane: positions in metres east and north of a middle, the
// distances between them, and the YAML of a moved one. Distances are great
// circles on the sphere of radius R1 of WGS 84, as the orchestrator's.
import { Document, isMap, isSeq, parseDocument, type YAMLMap } from 'yaml'

export type Role = 'client' | 'relay' | 'server'

export interface Station {
  name: string
  role: Role
  latitude: number
  longitude: number
  /** Metres above sea level; see elevationKnown. */
  elevation: number
}
export interface Link {
  a: Role
  b: Role
  distance_metres: number
  source: string
}
export interface Topology {
  name: string
  title: string
  source: string
  stations: Station[]
  links: Link[]
  notes?: string[]
}

const R1 = 6_371_008.8
const rad = Math.PI / 180

export interface Position {
  latitude: number
  longitude: number
}

export function distance(a: Position, b: Position): number {
  const dLat = (b.latitude - a.latitude) * rad
  const dLon = (b.longitude - a.longitude) * rad
  const h = Math.sin(dLat / 2) ** 2 + Math.cos(a.latitude * rad) * Math.cos(b.latitude * rad) * Math.sin(dLon / 2) ** 2
  return 2 * R1 * Math.asin(Math.sqrt(Math.min(1, h)))
}

/** Metres east and north of the middle; over a few kilometres the plane is as good as the sphere. */
export function toPlane(p: Position, middle: Position): { east: number; north: number } {
  return {
    east: (p.longitude - middle.longitude) * rad * R1 * Math.cos(middle.latitude * rad),
    north: (p.latitude - middle.latitude) * rad * R1,
  }
}

export function fromPlane(at: { east: number; north: number }, middle: Position): Position {
  return {
    latitude: middle.latitude + at.north / R1 / rad,
    longitude: middle.longitude + at.east / (R1 * Math.cos(middle.latitude * rad)) / rad,
  }
}

export function middleOf(stations: Position[]): Position {
  const mid = (xs: number[]) => (Math.min(...xs) + Math.max(...xs)) / 2
  return { latitude: mid(stations.map((s) => s.latitude)), longitude: mid(stations.map((s) => s.longitude)) }
}

/** The orchestrator gives an unknown elevation as 0 and says so in a note. */
export function elevationKnown(t: Topology, name: string): boolean {
  const note = t.notes?.find((n) => n.startsWith('Elevation unknown'))
  return (
    !note ||
    !note
      .replace(/^[^:]*:/, '')
      .replace(/\.$/, '')
      .split(',')
      .map((s) => s.trim())
      .includes(name)
  )
}

export function station(t: Topology, role: Role): Station | undefined {
  return t.stations.find((s) => s.role === role)
}

/** The stations on the way from the client to the server. */
export function way(t: Topology): Station[] {
  const next = (role: Role) => t.links.flatMap((l) => (l.a === role ? [l.b] : l.b === role ? [l.a] : []))
  const queue: Role[][] = [['client']]
  const seen = new Set<Role>(['client'])
  for (let path = queue.shift(); path; path = queue.shift()) {
    const last = path.at(-1)!
    if (last === 'server') return path.map((r) => station(t, r)).filter((s): s is Station => !!s)
    for (const r of next(last)) {
      if (!seen.has(r)) {
        seen.add(r)
        queue.push([...path, r])
      }
    }
  }
  return []
}

/** A round length for a scale bar or a grid: 1, 2 or 5 times a power of ten, at most what fits. */
export function roundLength(most: number): number {
  const p = 10 ** Math.floor(Math.log10(most))
  const f = most / p
  return p * (f >= 5 ? 5 : f >= 2 ? 2 : 1)
}

export function metres(m: number): string {
  return m >= 10_000 ? `${(m / 1000).toFixed(1)} km` : `${m.toFixed(m < 10 && m > 0 ? 1 : 0)} m`
}

/** Metres and, as the paper has them, feet. */
export function distanceText(m: number): string {
  return `${metres(m)} (${(m / 0.3048).toFixed(0)} ft)`
}

/**
 * The YAML of a topology whose stations were moved, made from its text so that
 * comments and what this page does not know stay. Stated distances of links
 * with a moved end go: they follow from the positions.
 */
export function movedYaml(text: string, moved: Topology, original: Topology, name: string, title: string): string {
  const doc = parseDocument(text)
  if (!isMap(doc.contents)) throw new Error('the topology is no mapping')
  doc.set('name', name)
  doc.set('title', title)
  doc.set('source', `positions moved on the map, from ${original.name}: ${original.source}`)
  const gone = new Set<Role>()
  const stations = doc.get('stations')
  if (!isSeq(stations)) throw new Error('stations is no list')
  for (const item of stations.items) {
    const m = item as YAMLMap
    const s = moved.stations.find((x) => x.name === m.get('name'))
    const o = original.stations.find((x) => x.name === m.get('name'))
    if (!s || !o) continue
    if (s.latitude !== o.latitude || s.longitude !== o.longitude) gone.add(s.role)
    m.set('latitude', Number(s.latitude.toFixed(7)))
    m.set('longitude', Number(s.longitude.toFixed(7)))
  }
  const links = doc.get('links')
  if (isSeq(links)) {
    for (const item of links.items) {
      const m = item as YAMLMap
      const ends = m.get('between')
      if (isSeq(ends) && ends.items.some((e) => gone.has(String((e as { value?: unknown }).value ?? e) as Role))) {
        m.delete('distance')
        m.set('source', 'from the positions on the map')
      }
    }
  }
  return (doc as Document).toString({ lineWidth: 0 })
}
