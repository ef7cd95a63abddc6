// Open campaigns, in the order in which they end: what runs, how far it is, what it waits for, what comes next. Pure.
import { RunState, type Run } from '@/gen/linktrial/v1/operator_pb'
import type { Campaign } from '@/gen/linktrial/v1/result_pb'
import { shownRun } from '@/features/run/campaignState'
import { payload } from '@/lib/format'
import { runState, type State } from '@/lib/states'

export interface OpenCampaign {
  id: string
  name: string
  state: State
  /** The run that it is shown by, and its number in the campaign where that is known. */
  where: string
  /** The run after it; empty: none is queued. */
  next: string
  waits: string
  trialsEnded: number
  trialsNotNeeded: number
  trials: number
  /** Seconds of trials to come; 0: not known. */
  left: number
  /** It moves: what is left ends after that time. */
  moves: boolean
}

export const placeOf = (r: Run) => [r.radio, r.topology, payload(r.sizeBytes), r.settings].filter(Boolean).join(', ')

/** Open is newest first, as listed; campaigns have the trials of runs that have ended. */
export function openCampaigns(open: readonly Run[], campaigns: readonly Campaign[]): OpenCampaign[] {
  const grouped = new Map<string, Run[]>()
  for (const r of [...open].reverse()) grouped.set(r.campaignId, [...(grouped.get(r.campaignId) ?? []), r])
  return [...grouped].map(([id, runs]) => {
    const c = campaigns.find((x) => x.id === id)
    const shown = shownRun([...runs].reverse())!
    const behind = runs.slice(runs.indexOf(shown) + 1).find((r) => r.state === RunState.QUEUED)
    const sum = (of: (r: Run) => number) => runs.reduce((n, r) => n + of(r), 0)
    const before = c ? c.runs - runs.length + runs.indexOf(shown) + 1 : 0
    return {
      id,
      name: c?.name || shown.plan,
      state: runState(shown, runs),
      where: (c && c.runs > 1 ? `Run ${before} of ${c.runs}: ` : '') + placeOf(shown),
      next: behind && !shown.virtual ? placeOf(behind) : '',
      waits: shown.waitingFor.join(', '),
      trialsEnded: c ? c.trialsEnded : sum((r) => r.trialsEnded),
      trialsNotNeeded: c ? c.trialsNotNeeded : sum((r) => r.trialsNotNeeded),
      trials: c ? c.trials : sum((r) => r.trials),
      left: sum((r) => r.estimatedSecondsLeft),
      moves:
        [RunState.RUNNING, RunState.COLLECTING].includes(shown.state) &&
        !runs.some((r) => r.paused || r.state === RunState.WAITING),
    }
  })
}
