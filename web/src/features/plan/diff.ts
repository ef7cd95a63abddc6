// The lines in which two texts differ, in their order.
export interface DiffLine {
  whose: 'theirs' | 'mine'
  text: string
}

/** Beyond this many lines in the middle that differ, they are not matched with each other. */
const most = 600

export function differing(theirs: string, mine: string): DiffLine[] {
  let a = theirs.split('\n')
  let b = mine.split('\n')
  while (a.length && b.length && a[0] === b[0]) {
    a = a.slice(1)
    b = b.slice(1)
  }
  while (a.length && b.length && a[a.length - 1] === b[b.length - 1]) {
    a = a.slice(0, -1)
    b = b.slice(0, -1)
  }
  const out: DiffLine[] = []
  const theirsLine = (text: string) => out.push({ whose: 'theirs', text })
  const mineLine = (text: string) => out.push({ whose: 'mine', text })
  if (a.length > most || b.length > most) {
    a.forEach(theirsLine)
    b.forEach(mineLine)
    return out
  }
  // The longest common subsequence, from the end.
  const long = Array.from({ length: a.length + 1 }, () => new Uint16Array(b.length + 1))
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--)
      long[i]![j] = a[i] === b[j] ? long[i + 1]![j + 1]! + 1 : Math.max(long[i + 1]![j]!, long[i]![j + 1]!)
  }
  let i = 0
  let j = 0
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      i++
      j++
    } else if (i < a.length && (j === b.length || long[i + 1]![j]! >= long[i]![j + 1]!)) theirsLine(a[i++]!)
    else mineLine(b[j++]!)
  }
  return out
}
