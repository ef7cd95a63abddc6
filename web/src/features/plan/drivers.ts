// Drivers and their options, and what each node can do of them.
import type { Node } from '@/gen/linktrial/v1/operator_pb'
import { exactBytes } from '@/lib/format'

export interface DriverOption {
  name: string
  type: 'string' | 'int' | 'number' | 'bool' | 'size' | 'duration'
  default?: string | number | boolean
  help: string
  choices?: string[]
  from_node?: boolean
  min?: number
  max?: number
}

export interface Manifest {
  name: string
  title: string
  summary: string
  version: string
  /** What its flows are: transfers where it says nothing. */
  kind?: string
  kernel?: string
  options?: DriverOption[]
}

export interface Choice {
  value: string
  /** Nodes that lack it. */
  lacking: string[]
}

/**
 * The values of an option: the manifest's closed list, or what the nodes'
 * queries have found. Relays run no driver of their own unless flows start there.
 */
export function choicesOf(
  option: DriverOption,
  protocol: string,
  nodes: Node[],
  here: Record<string, string> = {},
): Choice[] {
  if (option.choices?.length) return option.choices.map((value) => ({ value, lacking: [] }))
  if (!option.from_node) return []
  const split = (s: string | undefined) =>
    (s ?? '')
      .split(',')
      .map((x) => x.trim())
      .filter(Boolean)
  const ends = nodes.filter((n) => n.role !== 'relay' && n.drivers.some((d) => d.name === protocol))
  const of = new Map(ends.map((n) => [n.name, split(n.drivers.find((d) => d.name === protocol)?.choices[option.name])]))
  const all = new Set([...of.values()].flat())
  if (!all.size) for (const value of split(here[option.name])) all.add(value)
  return [...all]
    .sort()
    .map((value) => ({ value, lacking: [...of].filter(([, has]) => !has.includes(value)).map(([name]) => name) }))
}

const units: Record<string, string> = {
  size: 'a size such as 64 KiB',
  duration: 'a time such as 200ms',
  int: 'a whole number',
  number: 'a number',
}

/** A value of an option with its unit: manifests and run sheets have bytes and milliseconds. */
export function valueText(o: DriverOption, x: string | number | boolean): string {
  if (typeof x !== 'number') return String(x)
  if (o.type === 'duration') return x % 1000 === 0 && x >= 1000 ? `${x / 1000}s` : `${x}ms`
  return o.type === 'size' ? exactBytes(x) : String(x)
}

/** What may stand in the field: "a size such as 64 KiB, 4 KiB to 512 MiB". */
export function expects(o: DriverOption): string {
  const one = (x: number) => valueText(o, x)
  const range =
    o.min !== undefined && o.max !== undefined
      ? `${one(o.min)} to ${one(o.max)}`
      : o.min !== undefined
        ? `${one(o.min)} or more`
        : o.max !== undefined
          ? `${one(o.max)} or less`
          : ''
  return [units[o.type], range].filter(Boolean).join(', ')
}
