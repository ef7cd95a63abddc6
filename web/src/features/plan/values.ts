// Values of a plan's text, as they are shown and as people write them.
export type Plain = Record<string, unknown>

export const isPlain = (v: unknown): v is Plain => !!v && typeof v === 'object' && !Array.isArray(v)
/** A mapping as it is; anything else as an empty one. */
export const plain = (v: unknown): Plain => (isPlain(v) ? v : {})
export const flat = (v: unknown) => v === null || v === undefined || typeof v !== 'object'
export const shown = (v: unknown): string =>
  v === null || v === undefined
    ? ''
    : typeof v === 'object'
      ? JSON.stringify(v, (_, x: unknown) => (typeof x === 'bigint' ? Number(x) : x))
      : String(v)

/** A number where it is written as one, else text. */
export function typed(s: string): string | number {
  return /^-?(0|[1-9]\d{0,14})(\.\d+)?$/.test(s) ? Number(s) : s
}
