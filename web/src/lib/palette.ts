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
  ['path://M0,0 L10,10 M0,10 L10,0', '✕'],
  ['arrow', '▾'],
  ['emptyCircle', '○'],
  ['emptyRect', '□'],
  ['emptyTriangle', '△'],
  ['emptyDiamond', '◇'],
]
const dashes: Look['dash'][] = ['solid', 'dashed', 'dotted']

/** The looks of treatments, by name. Names first seen first keep their look. */
export function looks(names: Iterable<string>): Map<string, Look> {
  const out = new Map<string, Look>()
  for (const name of names) {
    if (out.has(name)) continue
    const i = out.size
    const m = markers[i % markers.length]!
    out.set(name, {
      color: colors[i % colors.length]!,
      marker: m[0],
      glyph: m[1],
      dash: dashes[Math.floor(i / colors.length) % dashes.length]!,
    })
  }
  return out
}
