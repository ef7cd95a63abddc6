// A figure as a file: every panel as it is shown, on white, with its legend and
// a line below that says what it is of.
import { wrap, type FigureSpec, type LegendItem } from './parts'
import { paper } from './ink'

export interface Sheet {
  title: string
  caption: string
  legend: LegendItem[]
  columns: number
  panelWidth: number
  figures: FigureSpec[]
}

const margin = 16
const esc = (s: string) =>
  s.replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f]/g, ' ').replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`)
const text = (x: number, y: number, s: string, size: number, o: { weight?: string; fill?: string } = {}) =>
  `<text x="${x}" y="${y}" font-size="${size}" fill="${o.fill ?? paper.text}" font-weight="${o.weight ?? 'normal'}">${esc(s)}</text>`

function legendRows(items: LegendItem[], width: number): { svg: (y: number) => string; height: number } {
  let x = margin
  let row = 0
  const placed = items.map((i) => {
    const w = 22 + i.label.length * 7.2 + 18
    if (x + w > width - margin && x > margin) {
      x = margin
      row++
    }
    const at = { i, x, row }
    x += w
    return at
  })
  return {
    height: items.length ? (row + 1) * 20 + 4 : 0,
    svg: (y) =>
      placed
        .map(
          (p) =>
            `<text x="${p.x}" y="${y + p.row * 20 + 14}" font-size="15" fill="${p.i.look.color}">${p.i.look.glyph}</text>${text(p.x + 18, y + p.row * 20 + 14, p.i.label, 13)}`,
        )
        .join(''),
  }
}

/** The whole figure as one SVG document. */
export async function sheetSvg(s: Sheet): Promise<{ svg: string; width: number; height: number }> {
  const { init } = await import('@/lib/echarts')
  const columns = Math.max(1, Math.min(s.columns, s.figures.length))
  const panelWidth = Math.max(s.panelWidth, ...s.figures.map((f) => f.minWidth ?? 0))
  const width = margin * 2 + columns * panelWidth + (columns - 1) * margin
  const title = wrap(s.title, Math.floor((width - 2 * margin) / 8.6), 3)
  const legend = legendRows(s.legend, width)
  let y = margin + title.length * 22 + 2
  const parts = title.map((l, i) => text(margin, margin + 15 + i * 22, l, 16, { weight: 'bold' }))
  parts.push(legend.svg(y))
  y += legend.height + 6
  for (let first = 0; first < s.figures.length; first += columns) {
    const row = s.figures.slice(first, first + columns)
    const notes = row.map((f) => wrap(f.note ?? '', Math.floor(panelWidth / 6.4), 3))
    const below = 22 + Math.max(0, ...notes.map((n) => n.length)) * 16
    for (const [i, f] of row.entries()) {
      const x = margin + i * (panelWidth + margin)
      const chart = init(null, null, { renderer: 'svg', ssr: true, width: panelWidth, height: f.height })
      try {
        chart.setOption(f.build(paper, { width: panelWidth, height: f.height }))
        parts.push(
          text(x, y + 15, wrap(f.title, Math.floor(panelWidth / 7.4), 1)[0] ?? '', 14, { weight: 'bold' }),
          ...notes[i]!.map((l, k) => text(x, y + 33 + k * 16, l, 12, { fill: paper.muted })),
        )
        // The style sheet is for pointers that hover; on paper there are none.
        parts.push(
          chart
            .renderToSVGString()
            .replace(/<style[\s\S]*?<\/style>/g, '')
            .replace(/ class="[^"]*"/g, '')
            .replace(/^<svg /, `<svg x="${x}" y="${y + below}" `),
        )
      } finally {
        chart.dispose()
      }
    }
    y += below + Math.max(...row.map((f) => f.height)) + 12
  }
  for (const l of wrap(`${s.caption} Linktrial.`, Math.floor((width - 2 * margin) / 6.4), 6)) {
    parts.push(text(margin, y + 12, l, 12, { fill: paper.muted }))
    y += 17
  }
  const height = Math.ceil(y + margin)
  return {
    width,
    height,
    svg: `<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" font-family="${esc(paper.font)}"><rect width="100%" height="100%" fill="${paper.surface}"/>${parts.join('')}</svg>`,
  }
}

/** Browsers refuse canvases beyond some size; a tall figure gets fewer pixels for each of its points. */
const mostPixels = 16_000
const mostArea = 120_000_000

export async function sheetPng(s: Sheet): Promise<Blob> {
  const { svg, width, height } = await sheetSvg(s)
  const scale = Math.min(2, mostPixels / Math.max(width, height), Math.sqrt(mostArea / (width * height)))
  const image = new Image()
  const url = URL.createObjectURL(new Blob([svg], { type: 'image/svg+xml' }))
  try {
    image.src = url
    await image.decode()
    const canvas = document.createElement('canvas')
    canvas.width = Math.floor(width * scale)
    canvas.height = Math.floor(height * scale)
    const c = canvas.getContext('2d')!
    c.fillStyle = paper.surface
    c.fillRect(0, 0, canvas.width, canvas.height)
    c.drawImage(image, 0, 0, canvas.width, canvas.height)
    return await new Promise<Blob>((done, fail) =>
      canvas.toBlob(
        (b) =>
          b
            ? done(b)
            : fail(new Error(`the browser could not make a picture of ${canvas.width} × ${canvas.height} pixels`)),
        'image/png',
      ),
    )
  } finally {
    URL.revokeObjectURL(url)
  }
}

/** A file name out of words: letters, digits and hyphens. */
export function fileName(words: string, ending: string): string {
  const stem = words
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-+|-+$/g, '')
    .slice(0, 120)
  return `${stem || 'figure'}.${ending}`
}
