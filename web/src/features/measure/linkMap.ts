// Where nodes were and what was measured there, on a plane: north up, a metre as long everywhere.
import { placeLengths, stationBoxes, type Box, type Point } from '@/features/map/labels'
import type { MeasuredPosition, SeriesPoint } from '@/gen/linktrial/v1/measure_pb'
import { distance, distanceText, middleOf, roundLength, toPlane, type Position } from '@/lib/topology'

/** The position of a role. */
export interface MapNode extends Position {
  role: string
}
/** One measurement of a series. */
export interface MapPoint extends Position {
  key: string
  outcome: string
  title: string
}
export interface MapLayout {
  nodes: (Point & { role: string })[]
  points: (Point & MapPoint)[]
  /** The way through the points, as points of a polyline. */
  track: string
  /** The link between client and server, with its length; the client or the server can be the last point. */
  link?: { from: Point; to: Point; text: string; at: Point }
  bar: { metres: number; pixels: number }
}

/** Room at the edges, in pixels: for names, and above and below for the scale, too. */
const pad = 64
const padHigh = 76
/** About what the mark of a measurement takes. */
const mark = 22
/** The least that a plan shows, in metres: positions of receivers scatter by some. */
const least = 20

/** A longitude as near as can be to another one: beside the 180th meridian it leaves ±180°. */
export const nearTo = (longitude: number, other: number) => longitude - 360 * Math.round((longitude - other) / 360)

/** Undefined: nothing has a position. moving is the role whose way the points are. */
export function layoutOf(
  nodes: readonly MapNode[],
  points: readonly MapPoint[],
  moving: string,
  width: number,
  height: number,
): MapLayout | undefined {
  const first = nodes[0] ?? points[0]
  if (!first) return undefined
  const near = <T extends Position>(p: T): T => ({ ...p, longitude: nearTo(p.longitude, first.longitude) })
  const all: Position[] = [...nodes, ...points].map(near)
  const middle = middleOf(all)
  const onPlane = all.map((p) => toPlane(p, middle))
  const most = (xs: number[]) => Math.max(least, 2 * Math.max(...xs.map(Math.abs)))
  const scale = Math.min(
    (width - 2 * pad) / most(onPlane.map((p) => p.east)),
    (height - 2 * padHigh) / most(onPlane.map((p) => p.north)),
  )
  const screen = (p: Position): Point => {
    const q = toPlane(near(p), middle)
    return { x: width / 2 + q.east * scale, y: height / 2 - q.north * scale }
  }
  const placed = nodes.map((n) => ({ role: n.role, ...screen(n) }))
  const marks = points.map((p) => ({ ...p, ...screen(p) }))
  const metres = roundLength(width / 5 / scale)
  return {
    nodes: placed,
    points: marks,
    track: marks.length > 1 ? marks.map((p) => `${p.x.toFixed(1)},${p.y.toFixed(1)}`).join(' ') : '',
    link: linkOf(nodes, points, moving, screen, { x: 0, y: 0, width, height }),
    bar: { metres, pixels: metres * scale },
  }
}

function linkOf(
  nodes: readonly MapNode[],
  points: readonly MapPoint[],
  moving: string,
  screen: (p: Position) => Point,
  view: Box,
): MapLayout['link'] {
  const end = (role: string): Position | undefined =>
    role === moving && points.length ? points.at(-1) : nodes.find((n) => n.role === role)
  const client = end('client')
  const server = end('server')
  if (!client || !server) return undefined
  const leg = { from: screen(client), to: screen(server), text: distanceText(distance(client, server)) }
  const taken = [
    ...nodes.flatMap((n) => stationBoxes(screen(n), n.role)),
    ...points.map(screen).map((p) => ({ x: p.x - mark / 2, y: p.y - mark / 2, width: mark, height: mark })),
  ]
  return { ...leg, at: placeLengths([leg], taken, view)[0]! }
}

/** What a series is drawn of: the points where the moving node was, and the other nodes where they were last. */
export function drawnSeries(points: readonly SeriesPoint[], moving: string, titleOf: (p: SeriesPoint) => string) {
  const others = new Map<string, MapNode>()
  const marks: MapPoint[] = []
  for (const p of points) {
    if (!p.ended) continue
    for (const at of p.positions) if (at.role !== moving) others.set(at.role, plain(at))
    const at = p.positions.find((x) => x.role === moving)
    if (at) marks.push({ ...plain(at), key: p.campaignId, outcome: p.outcome, title: titleOf(p) })
  }
  return { nodes: [...others.values()], points: marks }
}

export const plain = (p: MeasuredPosition): MapNode => ({ role: p.role, latitude: p.latitude, longitude: p.longitude })
