// Names and times in the forms of plans. Pure.

/** What may stand as a plan's file name. */
export function nameProblem(name: string, taken: string[] = []): string {
  if (!name) return 'A plan needs a name.'
  if (!/^[a-z0-9][a-z0-9-]{0,47}$/.test(name)) return 'Lower-case letters, digits and hyphens, at most 48.'
  return taken.includes(name) ? 'There is a plan of this name.' : ''
}

/** A moment as <input type="datetime-local"> has it, in the viewer's zone. */
export function localInput(at: Date): string {
  const pad = (n: number) => String(n).padStart(2, '0')
  return `${at.getFullYear()}-${pad(at.getMonth() + 1)}-${pad(at.getDate())}T${pad(at.getHours())}:${pad(at.getMinutes())}`
}
