// What is drawn on a printed page: a browser writes each canvas into a PDF as an image, but one that is
// drawn anew while it is about to print as lines.
import { inflateSync } from 'node:zlib'

export interface Printed {
  width: number
  height: number
  /** The share of its pixels that do not have the most frequent colour. */
  ink: number
}

/** The images of a PDF, without those that are the transparency of others. */
export function inkOf(pdf: Buffer): { images: Printed[] } {
  const text = pdf.toString('latin1')
  const masks = new Set([...text.matchAll(/\/SMask (\d+) 0 R/g)].map((m) => m[1]))
  const images: Printed[] = []
  for (const m of text.matchAll(/(\d+) 0 obj\s*<<((?:(?!endobj)[^])*?)>>\s*stream\r?\n/g)) {
    const [whole, id, dictionary] = m as unknown as [string, string, string]
    if (!/\/Subtype\s*\/Image/.test(dictionary) || masks.has(id)) continue
    const of = (key: string) => Number(new RegExp(`/${key} (\\d+)`).exec(dictionary)?.[1])
    const from = m.index + whole.length
    const bytes = inflateSync(pdf.subarray(from, from + of('Length')))
    const [width, height] = [of('Width'), of('Height')]
    const size = Math.round(bytes.length / (width * height))
    const colours = new Map<number, number>()
    for (let i = 0; i + size <= bytes.length; i += size) {
      const colour = bytes.readUIntBE(i, Math.min(size, 6))
      colours.set(colour, (colours.get(colour) ?? 0) + 1)
    }
    images.push({ width, height, ink: 1 - Math.max(...colours.values()) / (width * height) })
  }
  return { images }
}
