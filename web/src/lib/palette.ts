// One colour, one marker and one dash for each treatment, the same on every
// page and in every figure: drawn from its place in the plan's list and, over
// several campaigns, from its name, so that it never changes while one looks.
// Colours: Okabe and Ito, told apart by colour-blind people too; the marker and
// the dash say the same without colour.

export interface Look {
  color: string
  /** A symbol of ECharts. */
  marker: string
  /** The same as a character, for legends in text. */
  glyph: string
  dash: 'solid' | 'dashed' | 'dotted'
}

const colors = [
  '#0072b2',
  '#d55e00',
  '#009e73',
  '#cc79a7',
  '#7a5c00',
  '#56b4e9',
  '#a0260f',
  '#5b5bd6',
  '#3d7a1e',
  '#8a3ffc',
]
const markers: [string, string][] = [
  ['circle', '●'],
  ['rect', '■'],
  ['triangle', '▲'],
  ['diamond', '◆'],
  // A surface: symbols of points are filled, and strokes alone are not drawn.
  ['path://M2,0 L5,3 L8,0 L10,2 L7,5 L10,8 L8,10 L5,7 L2,10 L0,8 L3,5 L0,2 Z', '✕'],
  ['arrow', '▾'],
  ['emptyCircle', '○'],
  ['emptyRect', '□'],
  ['emptyTriangle', '△'],
  ['emptyDiamond', '◇'],
]
const dashes: Look['dash'][] = ['solid', 'dashed', 'dotted']

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
    const m = markers[(i + Math.floor(i / colors.length)) % markers.length]!
    out.set(name, {
      color: colors[i % colors.length]!,
      marker: m[0],
      glyph: m[1],
      dash: dashes[Math.floor(i / colors.length) % dashes.length]!,
    })
  }
  return out
}
