// Where the length of a link is written: beside its own line, clear of the other
// lines, of the stations with their names, and of the other lengths.

export interface Point {
  x: number
  y: number
}
export interface Box extends Point {
  width: number
  height: number
}
export interface Leg {
  from: Point
  to: Point
  text: string
}

/** About what a character and a line of the plan's text take, in pixels. */
const letter = 8
const line = 16
const shares = [0.5, 0.4, 0.6, 0.3, 0.7, 0.2, 0.8]
const gaps = [4, 14, 28, 48]

/** How far a point is from a line between two others. */
export function distanceToLeg(p: Point, { from, to }: Pick<Leg, 'from' | 'to'>): number {
  const dx = to.x - from.x
  const dy = to.y - from.y
  const length = dx * dx + dy * dy
  const t = length ? Math.min(1, Math.max(0, ((p.x - from.x) * dx + (p.y - from.y) * dy) / length)) : 0
  return Math.hypot(p.x - from.x - t * dx, p.y - from.y - t * dy)
}

/** What a text covers whose middle is at a point. */
export function textBox(at: Point, text: string): Box {
  const width = text.length * letter
  return { x: at.x - width / 2, y: at.y - line / 2, width, height: line }
}

/** What a station covers: its circle, its name and its role below. */
export function stationBoxes(at: Point, name: string): Box[] {
  return [
    { x: at.x - 15, y: at.y - 15, width: 30, height: 30 },
    { ...textBox({ x: at.x, y: at.y + 36 }, name), height: 32, y: at.y + 21 },
  ]
}

function overlap(a: Box, b: Box): number {
  const w = Math.min(a.x + a.width, b.x + b.width) - Math.max(a.x, b.x)
  const h = Math.min(a.y + a.height, b.y + b.height) - Math.max(a.y, b.y)
  return w > 0 && h > 0 ? w * h : 0
}

/** How much of a line lies in a box, in steps of a pixel or so. */
function crossing(b: Box, leg: Leg): number {
  const steps = Math.max(1, Math.ceil(Math.hypot(leg.to.x - leg.from.x, leg.to.y - leg.from.y)))
  let inside = 0
  for (let i = 0; i <= steps; i++) {
    const x = leg.from.x + ((leg.to.x - leg.from.x) * i) / steps
    const y = leg.from.y + ((leg.to.y - leg.from.y) * i) / steps
    if (x >= b.x && x <= b.x + b.width && y >= b.y && y <= b.y + b.height) inside++
  }
  return inside
}

/** The middle of each leg's text, in their order. */
export function placeLengths(legs: Leg[], taken: Box[], view: Box): Point[] {
  const boxes = [...taken]
  return legs.map((leg) => {
    const length = Math.hypot(leg.to.x - leg.from.x, leg.to.y - leg.from.y) || 1
    const normal = { x: -(leg.to.y - leg.from.y) / length, y: (leg.to.x - leg.from.x) / length }
    const others = legs.filter((l) => l !== leg)
    let best: Point = leg.from
    let least = Infinity
    for (const gap of gaps)
      for (const share of shares)
        for (const side of [-1, 1]) {
          const away =
            side * (gap + (Math.abs(normal.x) * leg.text.length * letter) / 2 + (Math.abs(normal.y) * line) / 2)
          const at = {
            x: leg.from.x + (leg.to.x - leg.from.x) * share + normal.x * away,
            y: leg.from.y + (leg.to.y - leg.from.y) * share + normal.y * away,
          }
          const box = textBox(at, leg.text)
          const own = distanceToLeg(at, leg)
          const cost =
            boxes.reduce((sum, b) => sum + 10 * overlap(box, b), 0) +
            (box.width * box.height - overlap(box, view)) +
            20 * legs.reduce((sum, l) => sum + crossing(box, l), 0) +
            // As close to another line, it would be read as that line's.
            1000 * others.filter((l) => distanceToLeg(at, l) < 1.5 * own).length +
            gap
          if (cost < least) {
            least = cost
            best = at
          }
        }
    boxes.push(textBox(best, leg.text))
    return best
  })
}
