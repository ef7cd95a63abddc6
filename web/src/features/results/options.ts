// The options of a run sheet's treatment with the units that the drivers' manifests
// give them: a sheet has sizes in bytes and times in milliseconds, as plain numbers.
import { valueText, type Manifest } from '@/features/plan/drivers'

export function withUnits(json: string, manifests: Manifest[]): string {
  let document: unknown
  try {
    document = JSON.parse(json)
  } catch {
    return json // shown as it came
  }
  return JSON.stringify(told(document, manifests))
}

function told(v: unknown, manifests: Manifest[]): unknown {
  if (Array.isArray(v)) return v.map((x) => told(x, manifests))
  if (v === null || typeof v !== 'object') return v
  const out = Object.fromEntries(Object.entries(v).map(([k, x]) => [k, told(x, manifests)]))
  const known = manifests.find((m) => m.name === out.protocol)?.options
  if (known && out.options && typeof out.options === 'object')
    out.options = Object.fromEntries(
      Object.entries(out.options).map(([name, x]) => {
        const o = known.find((k) => k.name === name)
        return [name, o && typeof x === 'number' && (o.type === 'size' || o.type === 'duration') ? valueText(o, x) : x]
      }),
    )
  return out
}
