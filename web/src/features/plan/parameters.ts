// The parameters of a radio that a plan can set or vary, by their paths.
import { isMap, isScalar, isSeq, parseDocument, type Node } from 'yaml'

export interface RadioParameter {
  path: string
  value: string
}

/** The scalars of a profile's emulation section, by the paths that a sweep uses. */
export function parametersOf(text: string): RadioParameter[] {
  const doc = parseDocument(text)
  const out: RadioParameter[] = []
  const walk = (node: Node | null | undefined, path: string) => {
    if (isMap(node)) {
      for (const pair of node.items) {
        const key = isScalar(pair.key) ? String(pair.key.value) : ''
        // "rate: {value: 2 Mbit/s, source: …}" is set as "rate".
        if (key === 'source') continue
        if (key === 'value') walk(pair.value as Node, path)
        else walk(pair.value as Node, path ? `${path}.${key}` : key)
      }
    } else if (isSeq(node)) node.items.forEach((item, i) => walk(item as Node, `${path}[${i}]`))
    else if (isScalar(node) && path && node.value !== null) out.push({ path, value: String(node.source ?? node.value) })
  }
  if (!doc.errors.length && isMap(doc.contents)) walk(doc.contents.get('emulation', true) as Node | undefined, '')
  return out.filter((f) => f.path !== 'medium' && !f.path.endsWith('.model'))
}
