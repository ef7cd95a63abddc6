// A campaign as this page knows it: what GetRun answered and what Watch has
// reported since. Plain data outside of Vue; components read it once a frame.
import type { Command } from '@/gen/linktrial/v1/control_pb'
import type {
  AttemptRow,
  GetRunResponse,
  JournalLine,
  Note,
  Note_Kind,
  Run,
  WatchResponse,
} from '@/gen/linktrial/v1/operator_pb'
import { RunState } from '@/gen/linktrial/v1/operator_pb'
import { date } from '@/lib/format'
import { ended } from '@/lib/states'

export interface Running {
  attempt: number
  /** When this page first received it, by this machine's clock, in milliseconds. */
  since: number
  estimatedSeconds: number
  bytes: number
  sizeBytes: number
  elapsedSeconds: number
}
export interface TrialModel {
  trial: number
  iteration: number
  treatment: string
  attempts: Map<number, AttemptRow>
  running?: Running
  /** An attempt of it began, and the run was over before it ended. */
  cut?: boolean
  /** Where a time bounds its flows: until the last of them ends. */
  durationSeconds?: number
  /** It has no flows: probes alone measure, and there is no throughput. */
  probesAlone?: boolean
}
export interface RunModel {
  run: Run
  /** When this page received the run's state, by this machine's clock, in milliseconds. */
  at: number
  trials: Map<number, TrialModel>
  commands: Map<string, Command>
  /** Nodes without contact. */
  silent: Map<string, Silence>
  /** The trial that runs, or ran last. */
  current?: number
}
export interface Silence {
  /** Last contact, by the orchestrator's clock. */
  since: Date
  /** The same moment by this machine's clock, in milliseconds. */
  local: number
}
export interface NoteLine {
  at: Date
  run: string
  kind: Note_Kind
  text: string
}

/** So many journal lines are kept; older ones are on the nodes and in the store. */
export const journalKept = 2000
const notesKept = 200

export class CampaignModel {
  readonly runs = new Map<string, RunModel>()
  readonly journal: JournalLine[] = []
  readonly notes: NoteLine[] = []
  private readonly lastSeq = new Map<string, bigint>() // by run and node
  private readonly waiting = new Map<string, WatchResponse['event'][]>() // arrived before their run

  apply(event: WatchResponse['event'], now = Date.now()): void {
    switch (event.case) {
      case 'run':
        this.setRun(event.value, now)
        return
      case 'note':
        this.note(event.value, now)
        if (this.notes.length > notesKept) this.notes.splice(0, this.notes.length - notesKept)
        return
      case 'journal':
        this.line(event.value)
        return
      case 'trialStarted':
      case 'progress':
      case 'trialEnded':
      case 'noContact':
      case 'command': {
        const run = this.runs.get(event.value.runId)
        if (run) step(run, event, now)
        else this.waiting.set(event.value.runId, [...(this.waiting.get(event.value.runId) ?? []), event])
      }
    }
  }

  // A stream that begins anew sends what stays true again.
  private note(n: Note, now: number) {
    if (this.notes.some((x) => x.run === n.runId && x.kind === n.kind && x.text === n.text)) return
    this.notes.push({ at: date(n.at) ?? new Date(now), run: n.runId, kind: n.kind, text: n.text })
  }

  private setRun(r: Run, now: number) {
    const known = this.runs.get(r.id)
    if (known) {
      known.run = r
      known.at = now
      if (ended(r.state))
        for (const t of known.trials.values()) {
          t.cut ||= !!t.running
          t.running = undefined
        }
      return
    }
    const made: RunModel = { run: r, at: now, trials: new Map(), commands: new Map(), silent: new Map() }
    this.runs.set(r.id, made)
    for (const e of this.waiting.get(r.id) ?? []) step(made, e, now)
    this.waiting.delete(r.id)
  }

  // A stream that begins anew sends its newest lines again.
  private line(l: JournalLine) {
    const key = `${l.runId} ${l.node}`
    if (l.seq <= (this.lastSeq.get(key) ?? 0n)) return
    this.lastSeq.set(key, l.seq)
    this.journal.push(l)
    if (this.journal.length > journalKept) this.journal.splice(0, this.journal.length - journalKept)
  }

  /** The newest line of a node's journal that this page has of a run. */
  lastLine(run: string, node: string): JournalLine | undefined {
    return this.journal.findLast((l) => l.runId === run && l.node === node)
  }

  /** The newest line of the other nodes' journals in a run, where it is from after a time. */
  lineSince(run: string, node: string, since: Date): JournalLine | undefined {
    return this.journal.findLast(
      (l) => l.runId === run && l.node !== node && (date(l.at)?.getTime() ?? 0) > since.getTime(),
    )
  }

  /** Takes what GetRun answered: all trials, and attempts as the store has them now. */
  load(r: GetRunResponse, now = Date.now()): void {
    if (!r.run) return
    if (!this.runs.has(r.run.id)) this.setRun(r.run, now)
    const model = this.runs.get(r.run.id)!
    for (const row of r.trials) {
      const t = trialOf(model, row.trial, row.iteration, row.treatment)
      for (const a of row.attempts) {
        if (a.verdict) endAttempt(t, a)
        else if (ended(r.run.state)) t.cut = !t.attempts.size
        else if (!t.attempts.get(a.attempt)?.verdict && !t.running) {
          t.running = {
            attempt: a.attempt,
            since: date(a.started)?.getTime() ?? now,
            estimatedSeconds: 0,
            bytes: 0,
            sizeBytes: 0,
            elapsedSeconds: 0,
          }
          model.current = t.trial
        }
      }
    }
  }
}

function trialOf(run: RunModel, trial: number, iteration: number, treatment: string): TrialModel {
  let t = run.trials.get(trial)
  if (!t) run.trials.set(trial, (t = { trial, iteration, treatment, attempts: new Map() }))
  if (iteration) t.iteration = iteration
  if (treatment) t.treatment = treatment
  return t
}

function endAttempt(t: TrialModel, a: AttemptRow) {
  t.attempts.set(a.attempt, a)
  if (t.running && t.running.attempt <= a.attempt) t.running = undefined
}

function step(run: RunModel, event: WatchResponse['event'], now: number) {
  switch (event.case) {
    case 'trialStarted': {
      const v = event.value
      const t = trialOf(run, v.trial, v.iteration, v.treatment)
      // After a reconnect the same start comes again.
      if (t.attempts.get(v.attempt)?.verdict) return
      if (ended(run.run.state)) {
        t.cut = true
        return
      }
      const since = t.running?.attempt === v.attempt ? t.running.since : now
      t.running = {
        bytes: 0,
        sizeBytes: 0,
        elapsedSeconds: 0,
        ...(t.running?.attempt === v.attempt && t.running),
        attempt: v.attempt,
        since,
        estimatedSeconds: v.estimatedSeconds,
      }
      run.current = v.trial
      return
    }
    case 'progress': {
      const v = event.value
      const t = run.trials.get(v.trial)
      if (!t || t.attempts.get(v.attempt)?.verdict || ended(run.run.state)) return
      t.running ??= { attempt: v.attempt, since: now, estimatedSeconds: 0, bytes: 0, sizeBytes: 0, elapsedSeconds: 0 }
      if (t.running.attempt !== v.attempt) return
      Object.assign(t.running, {
        bytes: Number(v.bytes),
        sizeBytes: Number(v.sizeBytes),
        elapsedSeconds: v.elapsedSeconds,
      })
      run.current = v.trial
      return
    }
    case 'trialEnded': {
      const v = event.value
      if (v.attempt) endAttempt(trialOf(run, v.trial, v.iteration, v.treatment), v.attempt)
      return
    }
    case 'noContact': {
      const since = date(event.value.since)
      const at = date(event.value.at) ?? new Date(now)
      if (since) run.silent.set(event.value.node, { since, local: now - (at.getTime() - since.getTime()) })
      else run.silent.delete(event.value.node)
      return
    }
    case 'command':
      run.commands.set(event.value.id, event.value)
  }
}

export interface Estimate {
  /** Seconds of trials to come; of all open runs together. */
  left: number
  /** When they end if nothing holds them; undefined while a run is paused or waits for people. */
  finish?: Date
  held: boolean
}

/**
 * What is left of a campaign: the orchestrator's estimates, and the clock since they came.
 * A campaign that is queued begins when the runs before it have ended; open has those of all campaigns.
 */
export function estimate(m: CampaignModel, now = Date.now(), open: readonly Run[] = []): Estimate {
  let left = 0
  let wait = 0
  let held = false
  for (const r of ahead(m, open)) {
    wait += r.estimatedSecondsLeft
    held ||= r.paused || r.state === RunState.WAITING
  }
  for (const r of m.runs.values()) {
    if (ended(r.run.state)) continue
    const moves = r.run.state === RunState.RUNNING && !r.run.paused
    left += Math.max(0, r.run.estimatedSecondsLeft - (moves ? (now - r.at) / 1000 : 0))
    held ||= r.run.paused || r.run.state === RunState.WAITING
  }
  return { left, held, finish: held ? undefined : new Date(now + (wait + left) * 1000) }
}

/** The open runs of other campaigns that were queued earlier and take part on the same nodes, while none of this one's has begun. */
function ahead(m: CampaignModel, open: readonly Run[]): Run[] {
  const own = [...m.runs.values()].map((r) => r.run).filter((r) => !ended(r.state))
  const first = own[0]
  if (!first || own.some((r) => r.state !== RunState.QUEUED)) return []
  const created = date(first.created)?.getTime() ?? 0
  const nodes = new Set(own.flatMap((r) => r.nodes))
  return open.filter(
    (r) =>
      r.campaignId !== first.campaignId &&
      !r.virtual &&
      (date(r.created)?.getTime() ?? 0) < created &&
      r.nodes.some((n) => nodes.has(n)),
  )
}
