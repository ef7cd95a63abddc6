// What a plan's form shows of its rule to stop by, and the edits of its text that a change is.
import type { Edit } from './conditions'
import { locked, type PlanText } from './text'
import { flat, isPlain, shown } from './values'

export const stopKeys = ['first', 'every', 'spending', 'alpha'] as const
export interface StopView extends Record<(typeof stopKeys)[number], string> {
  /** Whether the plan has a rule. */
  stated: boolean
}

/** The rule of `stop`; undefined: only the text can say it. */
export function stopOf(p: PlanText, v: unknown): StopView | undefined {
  const none = { first: '', every: '', spending: '', alpha: '' }
  if (v === undefined || v === null) return { ...none, stated: false }
  if (!isPlain(v) || !Object.values(v).every(flat) || locked(p, ['stop'])) return undefined
  return { ...none, ...Object.fromEntries(stopKeys.map((k) => [k, shown(v[k])])), stated: true }
}

/** The edit that gives a plan a rule, or takes it away with all its keys. */
export const stopStated = (stated: boolean): Edit => [['stop'], stated ? { first: 10, every: 5 } : undefined]
