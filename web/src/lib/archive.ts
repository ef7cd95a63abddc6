// Archives that the orchestrator makes while one waits: how far it is, and where the browser saves them from. Pure.
import { wholeSeconds } from '@/lib/format'

/** Where the browser saves an archive from. */
export const archiveAddress = (what: 'day' | 'evidence', key: string): string =>
  `/download/${what}?${new URLSearchParams({ key })}`

/** How far the work is, for people. */
export function progressText(p: { doing: string; done: number; secondsLeft: number }): string {
  const left = p.secondsLeft > 0 ? `, about ${wholeSeconds(Math.max(1, p.secondsLeft))} left` : ''
  return `${p.doing || 'looking for what there is'}: ${Math.round(100 * p.done)} %${left}`
}
