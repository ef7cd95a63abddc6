import { create } from '@bufbuild/protobuf'
import { mount } from '@vue/test-utils'
import { expect, test } from 'vitest'
import { SeriesPointSchema } from '@/gen/linktrial/v1/measure_pb'
import LinkMap from './LinkMap.vue'
import { drawnSeries, layoutOf, nearTo, type MapNode, type MapPoint } from './linkMap'

const node = (role: string, latitude: number, longitude: number): MapNode => ({ role, latitude, longitude })
const point = (latitude: number, longitude: number, outcome = 'yes'): MapPoint => ({
  key: `${latitude} ${longitude} ${outcome}`,
  latitude,
  longitude,
  outcome,
  title: outcome,
})
/** All that is drawn lies in the view and is a number. */
function inside(l: NonNullable<ReturnType<typeof layoutOf>>) {
  for (const p of [...l.nodes, ...l.points]) {
    expect(p.x).toBeGreaterThanOrEqual(0)
    expect(p.x).toBeLessThanOrEqual(800)
    expect(p.y).toBeGreaterThanOrEqual(0)
    expect(p.y).toBeLessThanOrEqual(400)
  }
  expect(l.bar.pixels).toBeGreaterThan(0)
  expect(l.bar.pixels).toBeLessThanOrEqual(160)
}
const layout = (nodes: MapNode[], points: MapPoint[], moving = 'client') => layoutOf(nodes, points, moving, 800, 400)

test('nothing has a position: there is no map', () => {
  expect(layout([], [])).toBeUndefined()
})

test('one point lies in the middle, and two equal ones on each other', () => {
  for (const points of [[point(39, -77)], [point(39, -77), point(39, -77, 'no')]]) {
    const l = layout([], points)!
    inside(l)
    for (const p of l.points) expect([p.x, p.y]).toEqual([400, 200])
    expect(l.link).toBeUndefined()
  }
  expect(layout([], [point(39, -77)])!.track).toBe('')
})

test('client and server have a link with its length; north is up and east is right', () => {
  const l = layout([node('client', 39.03, -76.96), node('server', 39.0308993, -76.959)], [])!
  inside(l)
  const [client, server] = l.nodes
  expect(server!.y).toBeLessThan(client!.y)
  expect(server!.x).toBeGreaterThan(client!.x)
  expect(l.link!.text).toMatch(/^132 m/)
  // A metre is as long in both directions.
  const pixels = Math.hypot(server!.x - client!.x, server!.y - client!.y)
  expect(pixels / (l.bar.pixels / l.bar.metres)).toBeCloseTo(132.3, 0)
})

test('the link of a series ends at its last point', () => {
  const l = layout([node('server', 39, -77)], [point(39.001, -77), point(39.002, -77, 'no')])!
  inside(l)
  expect(l.link!.from).toEqual({ x: l.points[1]!.x, y: l.points[1]!.y })
  expect(l.link!.text).toMatch(/^222 m/)
  expect(l.track.split(' ')).toHaveLength(2)
  // Its length covers no point.
  for (const p of l.points)
    expect(Math.abs(l.link!.at.x - p.x) > 11 + l.link!.text.length * 4 || Math.abs(l.link!.at.y - p.y) > 11 + 8).toBe(
      true,
    )
})

test('positions on both sides of the 180th meridian are near each other', () => {
  expect(nearTo(-179.9, 179.9)).toBeCloseTo(180.1)
  expect(nearTo(179.9, -179.9)).toBeCloseTo(-180.1)
  expect(nearTo(10, 20)).toBe(10)
  const l = layout([node('client', 0, 179.9995), node('server', 0, -179.9995)], [point(0, 179.9999)], 'relay')!
  inside(l)
  const [client, server] = l.nodes
  expect(server!.x).toBeGreaterThan(client!.x)
  expect(l.points[0]!.x).toBeGreaterThan(client!.x)
  expect(l.points[0]!.x).toBeLessThan(server!.x)
  expect(l.link!.text).toMatch(/^111 m/)
})

test('a series is drawn where the moving node was, with the others where they were last', () => {
  const at = (id: string, ended: boolean, latitude?: number) =>
    create(SeriesPointSchema, {
      campaignId: id,
      ended,
      outcome: 'no',
      positions: [
        { role: 'client', latitude: 1, longitude: Number(id) },
        ...(latitude === undefined ? [] : [{ role: 'server', latitude, longitude: 3 }]),
      ],
    })
  const d = drawnSeries(
    [at('1', true, 5), at('2', true), at('3', true, 6), at('4', false, 7)],
    'server',
    (p) => p.campaignId,
  )
  expect(d.points.map((p) => [p.key, p.latitude, p.outcome])).toEqual([
    ['1', 5, 'no'],
    ['3', 6, 'no'],
  ])
  expect(d.nodes).toEqual([{ role: 'client', latitude: 1, longitude: 3 }])
})

test('each outcome has a shape and a sign beside its colour', () => {
  const points = ['yes', 'no', 'undecided'].map((o, i) => point(39 + i / 1000, -77, o))
  const w = mount(LinkMap, { props: { nodes: [node('server', 39, -77.001)], points, moving: 'client' } })
  const marks = w.findAll('g[data-outcome]')
  expect(marks.map((m) => m.find('text').text())).toEqual(['✓', '✕', '?'])
  expect(new Set(marks.map((m) => m.find('path').attributes('d'))).size).toBe(3)
  expect(marks.map((m) => m.classes().find((c) => c.startsWith('tone-')))).toEqual(['tone-ok', 'tone-bad', 'tone-warn'])
  expect(marks[1]!.find('title').text()).toBe('no')
  expect(w.find('figcaption').text()).toContain('yes')
  expect(w.find('svg').attributes('aria-label')).toContain('3 measurements of the moving client')
  w.unmount()
})
