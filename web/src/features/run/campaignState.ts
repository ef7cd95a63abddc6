// The state of a campaign, from those of its runs. Pure.
import type { Run } from '@/gen/linktrial/v1/operator_pb'
import type { Campaign } from '@/gen/linktrial/v1/result_pb'
import { ended, runState, trialStates, type State } from '@/lib/states'

/** The open run that a campaign is shown by: one that needs somebody, else the one that runs, else the next. */
export function shownRun(open: readonly Run[]): Run | undefined {
  return (
    open.find((r) => runState(r, open).tone === 'warn') ??
    open.find((r) => runState(r, open).tone === 'run') ??
    open.at(-1)
  )
}

/** Open has the campaign's open runs, the newest first; others may be among them. */
export function campaignState(c: Campaign, open: readonly Run[]): State {
  if (c.ended) return runState({ state: c.endedAs, paused: false, pausing: false })
  const own = open.filter((r) => r.campaignId === c.id && !ended(r.state))
  const shown = shownRun(own)
  return shown ? runState(shown, own) : trialStates.running
}
