/** Longest text that is shown of a document: a channel's history can have thousands of values. */
const most = 20_000

/** JSON for people; long lists of numbers stay on one line, and a text that is no JSON stays as it is. */
export function pretty(json: string): string {
  if (!json) return ''
  let text = json
  try {
    text = JSON.stringify(
      JSON.parse(json),
      (_, v: unknown) =>
        Array.isArray(v) && v.length > 8 && v.every((x) => typeof x === 'number')
          ? `${v.length} values: ${v.slice(0, 6).join(', ')} …`
          : v,
      2,
    )
  } catch {
    // Shown as it came.
  }
  return text.length > most ? `${text.slice(0, most)}\n… ${text.length - most} more characters` : text
}
