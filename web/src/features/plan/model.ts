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

export interface RuleFields {
  repeat: 'daily' | 'weekdays' | 'days' | 'every'
  /** Days of the week, as `mon`, where they are chosen one by one. */
  days: string[]
  time: string
  zone: string
  hours: string
  until: string
}

export const weekDays = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun']

/** The rule of a form's fields, as the orchestrator reads it. */
export function ruleOf(f: RuleFields): string {
  const end = f.until ? ` until ${f.until}` : ''
  if (f.repeat === 'every') return `every ${f.hours.trim()}h${end}`
  const days = f.repeat === 'days' ? weekDays.filter((d) => f.days.includes(d)).join(',') : f.repeat
  return `${days} ${f.time.trim()} ${f.zone.trim()}`.trim() + end
}

/** What is missing of a rule before the orchestrator can be asked about it. */
export function ruleProblem(f: RuleFields): string {
  if (f.repeat === 'every')
    return /^[1-9]\d{0,3}$/.test(f.hours.trim()) ? '' : 'Expected a whole number of hours, such as 6.'
  if (f.repeat === 'days' && !f.days.length) return 'Choose at least one day of the week.'
  return timeProblem(f.time)
}
