import { create } from '@bufbuild/protobuf'
import { timestampFromDate } from '@bufbuild/protobuf/wkt'
import { describe, expect, it } from 'vitest'
import { CommandSchema } from '@/gen/linktrial/v1/control_pb'
import {
  AttemptRowSchema,
  GetRunResponseSchema,
  JournalLineSchema,
  ProgressSchema,
  RunSchema,
  RunState,
  NoContactSchema,
  TrialEndedSchema,
  TrialStartedSchema,
  type WatchResponse,
} from '@/gen/linktrial/v1/operator_pb'
import { cellOf, marks } from './cells'
import { CampaignModel, estimate, journalKept, type RunModel } from './campaignModel'

type Event = WatchResponse['event']
const run = (state: RunState, more = {}): Event => ({
  case: 'run',
  value: create(RunSchema, { id: 'r', state, trials: 2, estimatedSecondsLeft: 100, ...more }),
})
const started = (trial: number, attempt = 1): Event => ({
  case: 'trialStarted',
  value: create(TrialStartedSchema, { runId: 'r', trial, attempt, iteration: 1, treatment: 'a', estimatedSeconds: 5 }),
})
const progress = (trial: number, bytes: number, attempt = 1): Event => ({
  case: 'progress',
  value: create(ProgressSchema, {
    runId: 'r',
    trial,
    attempt,
    bytes: BigInt(bytes),
    sizeBytes: 1000n,
    elapsedSeconds: 1,
  }),
})
const ended = (trial: number, verdict: string, more = {}): Event => ({
  case: 'trialEnded',
  value: create(TrialEndedSchema, {
    runId: 'r',
    trial,
    iteration: 1,
    treatment: 'a',
    attempt: create(AttemptRowSchema, { attempt: 1, verdict, ...more }),
    lastAttempt: true,
  }),
})
const line = (seq: number, node = 'client'): Event => ({
  case: 'journal',
  value: create(JournalLineSchema, { runId: 'r', node, seq: BigInt(seq), type: 'x', text: 't' }),
})
const silence = (since?: Date): Event => ({
  case: 'noContact',
  value: create(NoContactSchema, { runId: 'r', node: 'client', since: since && timestampFromDate(since) }),
})
const command = (id: string, kind: string, more = {}): Event => ({
  case: 'command',
  value: create(CommandSchema, { id, runId: 'r', kind, ...more }),
})

function model(...events: Event[]): { m: CampaignModel; r: RunModel } {
  const m = new CampaignModel()
  for (const e of events) m.apply(e, 1000)
  return { m, r: m.runs.get('r')! }
}
const cell = (r: RunModel, trial = 0) => cellOf(r, r.trials.get(trial)!, marks(r.commands.values()))

describe('CampaignModel', () => {
  it('follows a trial from its start to its end', () => {
    const { m, r } = model(run(RunState.RUNNING), started(0), progress(0, 250))
    expect(cell(r)).toMatchObject({ kind: 'running', text: '25 %' })
    expect(r.current).toBe(0)
    m.apply(
      ended(0, 'succeeded', {
        throughputBytesPerSecond: 1024 * 100,
        measuredBytesPerSecond: 1024 * 100,
        elapsedSeconds: 2,
      }),
    )
    expect(cell(r)).toMatchObject({ kind: 'succeeded', text: '100 KB/s', glyph: '✓' })
    // Progress that comes late, or a stream that begins anew, changes nothing.
    m.apply(progress(0, 990))
    m.apply(started(0))
    expect(cell(r).kind).toBe('succeeded')
  })
  it('says of a trial of probes alone that it has measured, and no throughput', () => {
    const { r } = model(run(RunState.RUNNING), started(0))
    r.trials.get(0)!.probesAlone = true
    r.trials.get(0)!.running = undefined
    r.trials.get(0)!.attempts.set(1, create(AttemptRowSchema, { attempt: 1, verdict: 'succeeded', elapsedSeconds: 20 }))
    expect(cell(r)).toMatchObject({ kind: 'succeeded', text: 'measured', spoken: 'measured with probes in 20.0 s' })
  })
  it('says of a trial that was cut off by the end of its run that it has not ended', () => {
    const { m, r } = model(run(RunState.RUNNING), started(0))
    m.apply(run(RunState.ABORTED), 1000)
    expect(cell(r)).toMatchObject({ kind: 'not-ended', text: 'not ended' })
    // A page that is opened later hears of the start after the end.
    const late = model(run(RunState.ABORTED), started(0), progress(0, 250))
    expect(cell(late.r)).toMatchObject({ kind: 'not-ended' })
    late.m.load(
      create(GetRunResponseSchema, {
        run: create(RunSchema, { id: 'r', state: RunState.ABORTED }),
        trials: [{ trial: 1, iteration: 1, treatment: 'a', attempts: [{ attempt: 1, verdict: '' }] }],
      }),
    )
    expect(cell(late.r, 1)).toMatchObject({ kind: 'not-ended' })
  })
  it('keeps what comes before its run', () => {
    const { r } = model(started(0), run(RunState.RUNNING))
    expect(cell(r).kind).toBe('running')
  })
  it('fills in from GetRun and does not undo what is newer', () => {
    const { m, r } = model(run(RunState.RUNNING), ended(0, 'succeeded', { throughputBytesPerSecond: 2048 }))
    m.load(
      create(GetRunResponseSchema, {
        run: create(RunSchema, { id: 'r', state: RunState.RUNNING }),
        trials: [
          { trial: 0, iteration: 1, treatment: 'a', attempts: [{ attempt: 1, verdict: '' }] },
          { trial: 1, iteration: 1, treatment: 'b', attempts: [] },
          {
            trial: 2,
            iteration: 1,
            treatment: 'c',
            attempts: [
              { attempt: 1, verdict: 'failed', reason: 'connect-timeout' },
              { attempt: 2, verdict: '' },
            ],
          },
        ],
      }),
    )
    expect(cell(r, 0).kind).toBe('succeeded')
    expect(cell(r, 1).kind).toBe('waiting')
    expect(cell(r, 2)).toMatchObject({ kind: 'running', more: 'attempt 2' })
  })
  it('says what was never run when the run is over', () => {
    const { m, r } = model(run(RunState.RUNNING), started(0))
    m.load(
      create(GetRunResponseSchema, {
        run: { id: 'r', state: RunState.RUNNING },
        trials: [{ trial: 1, iteration: 1, treatment: 'b' }],
      }),
    )
    m.apply(run(RunState.ABORTED))
    expect(cell(r, 0).kind).toBe('not-ended')
    expect(cell(r, 1).text).toBe('not run')
  })
  it('takes each journal line once and not without bound', () => {
    const { m } = model(run(RunState.RUNNING), line(1), line(2), line(2), line(1), line(1, 'server'))
    expect(m.journal.map((l) => `${l.node} ${l.seq}`)).toEqual(['client 1', 'client 2', 'server 1'])
    for (let i = 3; i < journalKept + 50; i++) m.apply(line(i))
    expect(m.journal).toHaveLength(journalKept)
    expect(m.journal.at(-1)!.seq).toBe(BigInt(journalKept + 49))
  })
  it('knows which node is silent', () => {
    const since = new Date('2026-01-01T00:00:00Z')
    const { m, r } = model(run(RunState.RUNNING), silence(since))
    expect(r.silent.get('client')?.since).toEqual(since)
    m.apply(silence())
    expect(r.silent.size).toBe(0)
  })
})

describe('cellOf', () => {
  it.each([
    ['failed', { reason: 'connect-timeout', message: 'no answer' }, 'failed', 'failed: connect timeout: no answer'],
    ['timed-out', { reason: 'transfer-timeout' }, 'timed-out', 'timed out: transfer timeout'],
    ['aborted', { reason: 'skipped' }, 'skipped', 'skipped'],
    ['aborted', { reason: 'command' }, 'aborted', 'aborted: command'],
    ['invalid', { reason: 'clock-jump' }, 'invalid', 'invalid: clock jump'],
  ])('%s %o', (verdict, more, kind, spoken) => {
    const { r } = model(run(RunState.RUNNING), ended(0, verdict, more))
    expect(cell(r)).toMatchObject({ kind, spoken })
    expect(cell(r).glyph).not.toBe('')
  })
  it('keeps a marked figure in sight, and gives it back', () => {
    const at = (s: number) => timestampFromDate(new Date(s * 1000))
    const { m, r } = model(
      run(RunState.RUNNING),
      ended(0, 'succeeded', { throughputBytesPerSecond: 1024, measuredBytesPerSecond: 1024 }),
      command('1', 'exclude', { trial: 0, attempt: 1, reason: 'truck in the way', given: at(1) }),
    )
    expect(cell(r)).toMatchObject({
      kind: 'invalid',
      text: '1.00 KB/s',
      spoken: 'invalid: truck in the way, 1.00 KB/s',
    })
    m.apply(command('2', 'include', { trial: 0, attempt: 1, given: at(2) }))
    expect(cell(r).kind).toBe('succeeded')
  })
  it('keeps the figure of what does not count', () => {
    const mark = { reason: 'rain', by: 'ada', journalVerdict: 'succeeded' }
    const { r } = model(
      run(RunState.RUNNING),
      ended(0, 'invalid', { reason: 'marked: rain', measuredBytesPerSecond: 2048, mark }),
    )
    expect(cell(r)).toMatchObject({ kind: 'invalid', text: '2.00 KB/s', aside: 'rain' })
  })
  it('takes the time as progress where a time bounds the flows', () => {
    const { r } = model(run(RunState.RUNNING), started(0), progress(0, 1))
    r.trials.get(0)!.durationSeconds = 4
    expect(cell(r).text).toBe('25 %')
  })
  it('shows commands until they are applied', () => {
    const { m, r } = model(run(RunState.RUNNING), ended(0, 'failed'), command('1', 'repeat', { trial: 0 }))
    expect(cell(r).more).toBe('repeat requested')
    m.apply(command('1', 'repeat', { trial: 0, applied: timestampFromDate(new Date()) }))
    expect(cell(r).more).toBe('')
  })
})

describe('estimate', () => {
  it('counts down while a run moves, and not while it is held', () => {
    const { m } = model(run(RunState.RUNNING))
    expect(estimate(m, 11_000).left).toBe(90)
    expect(estimate(m, 11_000).finish).toEqual(new Date(101_000))
    m.apply(run(RunState.RUNNING, { paused: true }), 11_000)
    expect(estimate(m, 21_000)).toMatchObject({ left: 100, held: true, finish: undefined })
    m.apply(run(RunState.WAITING), 21_000)
    expect(estimate(m, 31_000)).toMatchObject({ left: 100, held: true })
    m.apply(run(RunState.COMPLETED), 31_000)
    expect(estimate(m, 41_000)).toMatchObject({ left: 0, held: false })
  })

  it('of a queued campaign ends after the runs that were queued before it on the same nodes', () => {
    const at = (seconds: number) => timestampFromDate(new Date(seconds * 1000))
    const { m } = model(run(RunState.QUEUED, { campaignId: 'c', created: at(10), nodes: ['a', 'b'] }))
    const other = (more: object) =>
      create(RunSchema, { id: 'o', campaignId: 'o', created: at(5), nodes: ['b'], estimatedSecondsLeft: 60, ...more })
    expect(estimate(m, 1000).finish).toEqual(new Date(101_000))
    expect(estimate(m, 1000, [other({})])).toMatchObject({ left: 100, finish: new Date(161_000) })
    for (const more of [{ created: at(11) }, { nodes: ['c'] }, { campaignId: 'c' }, { virtual: true }])
      expect(estimate(m, 1000, [other(more)]).finish).toEqual(new Date(101_000))
    expect(estimate(m, 1000, [other({ paused: true })])).toMatchObject({ held: true, finish: undefined })
    m.apply(run(RunState.RUNNING, { campaignId: 'c', created: at(10), nodes: ['b'] }), 1000)
    expect(estimate(m, 1000, [other({})]).finish).toEqual(new Date(101_000))
  })
})
