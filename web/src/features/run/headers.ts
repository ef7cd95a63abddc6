// Short headings for the columns of a matrix: what tells them apart stays.

/** Labels of at most this many characters, no two of them alike; the whole label is the heading's title. */
export function shortLabels(labels: string[], most = 18): string[] {
  const out = labels.map((l) => cut(l, most, most - 1))
  // Where beginnings are alike, the ends differ.
  for (const [i, l] of labels.entries())
    if (l.length > most && out.some((o, k) => k !== i && o === out[i])) out[i] = cut(l, most, Math.ceil(most / 2) - 1)
  // Where both are alike, the number of the column does.
  return out.map((o, i) => (labels[i]!.length > most && out.indexOf(o) !== i ? `${o} ${i + 1}` : o))
}

function cut(label: string, most: number, head: number): string {
  if (label.length <= most) return label
  const tail = most - head - 1
  return `${label.slice(0, head).trimEnd()}…${tail > 0 ? label.slice(-tail).trimStart() : ''}`
}
