// Short headings for the columns of a matrix: what tells them apart stays.

/** Labels of at most this many characters, no two of them alike; the whole label is the heading's title. */
export function shortLabels(labels: string[], most = 18): string[] {
  const begun = labels.map((l) => (l.length <= most ? l : `${l.slice(0, most - 1).trimEnd()}…`))
  // Where beginnings are alike, the ends differ.
  const out = begun.map((b, i) => (begun.some((o, k) => k !== i && o === b) ? ends(labels[i]!, most) : b))
  // Where both are alike, the number of the column does.
  return out.map((o, i) => (labels[i]!.length > most && out.indexOf(o) !== i ? `${o} ${i + 1}` : o))
}

/** Both ends of a label, the last one in whole words where they fit into half of the room. */
function ends(label: string, most: number): string {
  if (label.length <= most) return label
  const room = Math.floor(most / 2)
  const words = label.split(' ')
  let tail = ''
  while (words.length && tail.length + words.at(-1)!.length + (tail ? 1 : 0) <= room)
    tail = [words.pop()!, tail].filter(Boolean).join(' ')
  tail ||= label.slice(-room)
  return `${label.slice(0, most - 1 - tail.length).trimEnd()}…${tail}`
}
