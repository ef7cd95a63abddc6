// Names and times in the forms of plans. Pure.

/** What may stand as a plan's file name. */
export function nameProblem(name: string, taken: string[] = []): string {
  if (!name) return 'A plan needs a name.'
  if (!/^[a-z0-9][a-z0-9-]{0,47}$/.test(name)) return 'Lower-case letters, digits and hyphens, at most 48.'
  return taken.includes(name) ? 'There is a plan of this name.' : ''
}

/** A moment as the two fields of a form have it, in the viewer's zone: a day, and a time of 24 hours. */
export function localInput(at: Date): { day: string; time: string } {
  const pad = (n: number) => String(n).padStart(2, '0')
  return {
    day: `${at.getFullYear()}-${pad(at.getMonth() + 1)}-${pad(at.getDate())}`,
    time: `${pad(at.getHours())}:${pad(at.getMinutes())}`,
  }
}

/** What is wrong with a time of day. */
export function timeProblem(time: string): string {
  return /^([01]?\d|2[0-3]):[0-5]\d$/.test(time.trim()) ? '' : 'Expected hours and minutes, such as 14:30.'
}

/** The moment of both fields; undefined where they are none. */
export function localMoment(day: string, time: string): Date | undefined {
  if (!day || timeProblem(time)) return undefined
  // Without a zone it is read in the viewer's own.
  const at = new Date(`${day}T${time.trim().padStart(5, '0')}`)
  return Number.isNaN(at.getTime()) ? undefined : at
}
