// Names and times in the forms of plans. Pure.

/** What may stand as a plan's file name. */
export function nameProblem(name: string, taken: string[] = []): string {
  if (!name) return 'A plan needs a name.'
  if (!/^[a-z0-9][a-z0-9-]{0,47}$/.test(name)) return 'Lower-case letters, digits and hyphens, at most 48.'
  return taken.includes(name) ? 'There is a plan of this name.' : ''
}

/** A moment as the two fields of a form have it, in UTC: a day, and a time of 24 hours. */
export function momentInput(at: Date): { day: string; time: string } {
  const text = at.toISOString()
  return { day: text.slice(0, 10), time: text.slice(11, 16) }
}

/** What is wrong with a time of day. */
export function timeProblem(time: string): string {
  return /^([01]?\d|2[0-3]):[0-5]\d$/.test(time.trim()) ? '' : 'Expected hours and minutes, such as 14:30.'
}

/** The moment of both fields; undefined where they are none. */
export function momentOf(day: string, time: string): Date | undefined {
  if (!day || timeProblem(time)) return undefined
  const at = new Date(`${day}T${time.trim().padStart(5, '0')}Z`)
  return Number.isNaN(at.getTime()) ? undefined : at
}
