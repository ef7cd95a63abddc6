// One colour, one marker and one dash for each treatment, the same on every
// page and in every figure, exported ones too: drawn from its place in the
// plan's list and, over several campaigns, from its name, so that it never
// changes while one looks. The table is that of the orchestrator's figures
// (orchestrator/report/figure/look.go), whose test writes looks.json. Colours:
// five of Okabe and Ito's, told apart by colour-blind people too, and five that
// are dark enough on white; the marker and the dash say the same without colour.
import table from './looks.json'

export interface Look {
  color: string
  /** A symbol of ECharts. */
  marker: string
  /** How many times a circle's diameter the symbol must be, to weigh as much. */
  size: number
  /** The same as a character, for legends in text. */
  glyph: string
  dash: 'solid' | 'dashed' | 'dotted'
}

const colors = table.colors
export const dashes = table.dashes as Look['dash'][]

/** A marker as ECharts has it. It stretches a path to the symbol's square: two points in its corners keep every shape as it is. */
function symbolOf(points: string): Pick<Look, 'marker' | 'size'> {
  if (!points) return { marker: 'circle', size: 1 }
  const b = table.box
  return { marker: `path://M-${b},-${b}M${b},${b}M${points.replaceAll(' ', 'L')}Z`, size: b / table.radius }
}
const markers = table.markers.map((m) => ({ glyph: m.glyph, ...symbolOf(m.points) }))

/** A colour mixed with white (255) or black (0): those of the palette are made for a light ground indoors. */
export function mixed(color: string, ground: number, share: number): string {
  const n = Number.parseInt(color.slice(1), 16)
  const mix = (x: number) => Math.round(x + (ground - x) * share)
  return `#${[n >> 16, (n >> 8) & 255, n & 255].map((x) => mix(x).toString(16).padStart(2, '0')).join('')}`
}

/** A treatment's colour on the ground of a theme. */
export function toned(color: string, theme: 'light' | 'dark' | 'sun'): string {
  return theme === 'dark' ? mixed(color, 255, 0.42) : theme === 'sun' ? mixed(color, 0, 0.28) : color
}

/** The looks of treatments, by name. Names first seen first keep their look. */
export function looks(names: Iterable<string>): Map<string, Look> {
  const out = new Map<string, Look>()
  for (const name of names) {
    if (out.has(name)) continue
    const i = out.size
    // Each round of the colours has other markers: a hundred treatments differ in one of both.
    const round = Math.floor(i / colors.length)
    out.set(name, {
      color: colors[i % colors.length]!,
      ...markers[(i + round) % markers.length]!,
      dash: dashes[round % dashes.length]!,
    })
  }
  return out
}
