// A campaign as this page knows it: what GetRun answered and what Watch has
// reported since. Its parts are reactive one by one: the list of runs, what is
// known of a run, its trials (each of them, and all together), its commands, the
// journal and the notes. So what a page computes follows what it has read, and
// nothing else. What the parts hold is never reactive: a trial, an attempt, a
// line are values, and a change puts another one in their place. Samples stay
// outside of Vue; a chart draws them by its own clock (liveSeries.ts).
import { create } from '@bufbuild/protobuf'
import { shallowReactive, shallowRef } from 'vue'
import type { Command } from '@/gen/linktrial/v1/control_pb'
import type {
  AttemptRow,
  GetRunResponse,
  JournalLine,
  Note,
  Note_Kind,
  Run,
  TrialRow,
  WatchResponse,
} from '@/gen/linktrial/v1/operator_pb'
import { AttemptRowSchema, RunState } from '@/gen/linktrial/v1/operator_pb'
import { date } from '@/lib/format'
import { ended } from '@/lib/states'
import { LiveSeries } from './liveSeries'
import { sheetView, type SheetView } from './sheet'

export interface Running {
  readonly attempt: number
  /** When this page first received it, by this machine's clock, in milliseconds. */
  readonly since: number
  readonly estimatedSeconds: number
  readonly bytes: number
  readonly sizeBytes: number
  readonly elapsedSeconds: number
}
/** A trial as it is known now: a change makes another one. */
export interface Trial {
  readonly trial: number
  readonly iteration: number
  readonly treatment: string
  readonly attempts: ReadonlyMap<number, AttemptRow>
  readonly running?: Running
  /** An attempt of it began, and the run was over before it ended. */
  readonly cut?: boolean
}
/** A run that is watched. Reactive: each field, and each of the maps by its keys. */
export interface WatchedRun {
  readonly run: Run
  /** When this page received the run's state, by this machine's clock, in milliseconds. */
  readonly at: number
  /** Once GetRun has answered. */
  readonly sheet?: SheetView
  readonly trials: ReadonlyMap<number, Trial>
  readonly commands: ReadonlyMap<string, Command>
  /** Nodes without contact. */
  readonly silent: ReadonlyMap<string, Silence>
  /** The trial that runs, or ran last. */
  readonly current?: number
}
/** The same for this file, which alone changes it. */
interface Watched extends WatchedRun {
  run: Run
  at: number
  sheet?: SheetView
  readonly trials: Map<number, Trial>
  readonly commands: Map<string, Command>
  readonly silent: Map<string, Silence>
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

export type CampaignEvent = WatchResponse['event']
/** An event, and when this page received it, by this machine's clock, in milliseconds. */
export interface Received {
  event: CampaignEvent
  at: number
}

export class CampaignStore {
  private readonly watched = shallowReactive(new Map<string, Watched>())
  private readonly lines = shallowRef<readonly JournalLine[]>([])
  private readonly said = shallowRef<readonly NoteLine[]>([])
  private readonly series = new Map<string, LiveSeries>() // by run
  private readonly lastSeq = new Map<string, bigint>() // by run and node
  private readonly waiting = new Map<string, Received[]>() // arrived before their run

  get runs(): ReadonlyMap<string, WatchedRun> {
    return this.watched
  }
  /** The newest lines, the newest last. */
  get journal(): readonly JournalLine[] {
    return this.lines.value
  }
  get notes(): readonly NoteLine[] {
    return this.said.value
  }

  /** The samples of a run, which are not reactive. */
  seriesOf(run: string): LiveSeries {
    let s = this.series.get(run)
    if (!s) this.series.set(run, (s = new LiveSeries()))
    return s
  }

  /** Takes what has arrived since the last time, in its order. */
  apply(batch: Iterable<Received>): void {
    const lines: JournalLine[] = []
    for (const r of batch) {
      const event = r.event
      switch (event.case) {
        case 'run':
          this.setRun(event.value, r.at)
          break
        case 'note':
          this.note(event.value, r.at)
          break
        case 'journal':
          if (this.isNew(event.value)) lines.push(event.value)
          break
        case 'samples': {
          const v = event.value
          const offset = this.watched.get(v.runId)?.sheet?.offsets.get(`${v.trial} ${v.flow}`)
          this.seriesOf(v.runId).add(v, offset)
          break
        }
        case 'trialStarted':
        case 'progress':
        case 'trialEnded':
        case 'noContact':
        case 'command': {
          const id = event.value.runId
          const run = this.watched.get(id)
          if (run) step(run, r)
          else if (!this.waiting.get(id)?.push(r)) this.waiting.set(id, [r])
        }
      }
    }
    if (lines.length) this.lines.value = [...this.lines.value, ...lines].slice(-journalKept)
  }

  // A stream that begins anew sends what stays true again.
  private note(n: Note, now: number) {
    const known = this.said.value
    if (known.some((x) => x.run === n.runId && x.kind === n.kind && x.text === n.text)) return
    const line = { at: date(n.at) ?? new Date(now), run: n.runId, kind: n.kind, text: n.text }
    this.said.value = [...known, line].slice(-notesKept)
  }

  private setRun(r: Run, now: number): Watched {
    const known = this.watched.get(r.id)
    if (known) {
      known.run = r
      known.at = now
      if (ended(r.state))
        for (const t of known.trials.values())
          if (t.running) known.trials.set(t.trial, { ...t, cut: true, running: undefined })
      return known
    }
    const made: Watched = shallowReactive({
      run: r,
      at: now,
      trials: shallowReactive(new Map<number, Trial>()),
      commands: shallowReactive(new Map<string, Command>()),
      silent: shallowReactive(new Map<string, Silence>()),
      sheet: undefined,
      current: undefined,
    })
    this.watched.set(r.id, made)
    for (const e of this.waiting.get(r.id) ?? []) step(made, e)
    this.waiting.delete(r.id)
    return made
  }

  // A stream that begins anew sends its newest lines again.
  private isNew(l: JournalLine): boolean {
    const key = `${l.runId} ${l.node}`
    if (l.seq <= (this.lastSeq.get(key) ?? 0n)) return false
    this.lastSeq.set(key, l.seq)
    return true
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

  /** Takes what GetRun answered: the sheet, all trials, and attempts as the store has them now. */
  load(r: GetRunResponse, now = Date.now()): void {
    if (!r.run) return
    const run = this.watched.get(r.run.id) ?? this.setRun(r.run, now)
    // It is the same for ever, and large.
    if (!run.sheet && r.sheet.length) run.sheet = sheetView(r.sheet)
    for (const row of r.trials) {
      let t = trialOf(run, row.trial, row.iteration, row.treatment)
      // No attempt has number 0: the trial ended without one. Watch says so, too.
      if (row.verdict && !row.attempts.length) t = withAttempt(t, unattempted(row))
      for (const a of row.attempts) {
        if (a.verdict) t = withAttempt(t, a)
        else if (ended(r.run.state)) t = { ...t, cut: !t.attempts.size }
        else if (!t.attempts.get(a.attempt)?.verdict && !t.running) {
          t = { ...t, running: { ...begun, attempt: a.attempt, since: date(a.started)?.getTime() ?? now } }
          run.current = t.trial
        }
      }
      run.trials.set(t.trial, t)
    }
  }
}

/** What became of a trial that ended without an attempt. */
function unattempted(row: TrialRow): AttemptRow {
  return create(AttemptRowSchema, {
    verdict: row.verdict,
    reason: row.notNeeded ? 'not-needed' : 'skipped',
    message: row.notNeeded ? 'the plan’s rule to stop by had ended the trial' : 'the trial was skipped',
  })
}

/** Of an attempt of which no more is known than that it runs. */
const begun = { estimatedSeconds: 0, bytes: 0, sizeBytes: 0, elapsedSeconds: 0 }

/** A trial as it is known, or the first that is known of it. */
function trialOf(run: Watched, trial: number, iteration: number, treatment: string): Trial {
  const t = run.trials.get(trial)
  if (!t) return { trial, iteration, treatment, attempts: new Map() }
  return { ...t, iteration: iteration || t.iteration, treatment: treatment || t.treatment }
}

/** The trial with an attempt that has ended. */
function withAttempt(t: Trial, a: AttemptRow): Trial {
  const over = t.running && t.running.attempt <= a.attempt
  return {
    ...t,
    attempts: new Map(t.attempts).set(a.attempt, a),
    running: over ? undefined : t.running,
  }
}

function step(run: Watched, { event, at }: Received) {
  switch (event.case) {
    case 'trialStarted': {
      const v = event.value
      const t = trialOf(run, v.trial, v.iteration, v.treatment)
      // After a reconnect the same start comes again.
      if (t.attempts.get(v.attempt)?.verdict) return
      if (ended(run.run.state)) {
        run.trials.set(v.trial, { ...t, cut: true })
        return
      }
      const known = t.running?.attempt === v.attempt ? t.running : { ...begun, attempt: v.attempt, since: at }
      run.trials.set(v.trial, { ...t, running: { ...known, estimatedSeconds: v.estimatedSeconds } })
      run.current = v.trial
      return
    }
    case 'progress': {
      const v = event.value
      const t = run.trials.get(v.trial)
      if (!t || t.attempts.get(v.attempt)?.verdict || ended(run.run.state)) return
      const known = t.running ?? { ...begun, attempt: v.attempt, since: at }
      if (known.attempt !== v.attempt) return
      const { elapsedSeconds } = v
      const running = { ...known, bytes: Number(v.bytes), sizeBytes: Number(v.sizeBytes), elapsedSeconds }
      run.trials.set(v.trial, { ...t, running })
      run.current = v.trial
      return
    }
    case 'trialEnded': {
      const v = event.value
      if (v.attempt) run.trials.set(v.trial, withAttempt(trialOf(run, v.trial, v.iteration, v.treatment), v.attempt))
      return
    }
    case 'noContact': {
      const since = date(event.value.since)
      const heard = date(event.value.at) ?? new Date(at)
      if (since) run.silent.set(event.value.node, { since, local: at - (heard.getTime() - since.getTime()) })
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
export function estimate(m: CampaignStore, now = Date.now(), open: readonly Run[] = []): Estimate {
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
function ahead(m: CampaignStore, open: readonly Run[]): Run[] {
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
