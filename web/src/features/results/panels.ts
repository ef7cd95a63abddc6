// Panels of lines over one time axis, whatever the lines are of. Pure.

export interface DeepLine {
  name: string
  points: [number, number][]
  /** A value holds until the next one. */
  step: boolean
}
export interface DeepPanel {
  key: string
  title: string
  unit: string
  /** Counts of something: there is no third of one. */
  whole?: boolean
  lines: DeepLine[]
}

/** Finer panels laid into those of the whole, between two moments: the overview stays around them, for zooming out again. */
export function mergePanels(whole: DeepPanel[], fine: DeepPanel[], from: number, to: number): DeepPanel[] {
  return whole.map((p) => {
    const finer = fine.find((f) => f.key === p.key)
    if (!finer) return p
    return {
      ...p,
      lines: p.lines.map((l) => {
        const inner = finer.lines.find((f) => f.name === l.name)?.points.filter(([at]) => at >= from && at <= to)
        // A finer line that has nothing there knows nothing better: the overview stands.
        return inner?.length
          ? { ...l, points: [...l.points.filter(([at]) => at < from), ...inner, ...l.points.filter(([at]) => at > to)] }
          : l
      }),
    }
  })
}

/** The value of a line at a moment: the last at or before it where steps, else the nearest. */
export function valueAt(l: DeepLine, at: number): number {
  let low = 0
  let high = l.points.length
  while (low < high) {
    const mid = (low + high) >> 1
    if (l.points[mid]![0] <= at) low = mid + 1
    else high = mid
  }
  const before = l.points[low - 1]
  const after = l.points[low]
  if (l.step || !after) return before?.[1] ?? Number.NaN
  if (!before) return after[1]
  return at - before[0] <= after[0] - at ? before[1] : after[1]
}
