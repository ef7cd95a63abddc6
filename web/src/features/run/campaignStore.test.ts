import { create } from '@bufbuild/protobuf'
import { timestampFromDate } from '@bufbuild/protobuf/wkt'
import { describe, expect, it, vi } from 'vitest'
import { computed, effectScope, isReactive, nextTick, watch } from 'vue'
import { CommandSchema } from '@/gen/linktrial/v1/control_pb'
import {
  AttemptRowSchema,
  GetRunResponseSchema,
  JournalLineSchema,
  LiveSamplesSchema,
  NoteSchema,
  ProgressSchema,
  RunSchema,
  RunState,
  NoContactSchema,
  TrialEndedSchema,
  TrialStartedSchema,
} from '@/gen/linktrial/v1/operator_pb'
import { cellOf, cellsOf, marks } from './cells'
import { CampaignStore, estimate, journalKept, type CampaignEvent as Event, type WatchedRun } from './campaignStore'

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

const apply = (m: CampaignStore, event: Event, at = Date.now()) => m.apply([{ event, at }])
function model(...events: Event[]): { m: CampaignStore; r: WatchedRun } {
  const m = new CampaignStore()
  for (const e of events) apply(m, e, 1000)
  return { m, r: m.runs.get('r')! }
}
/** What GetRun answers of the run, with what its sheet says of its trials. */
const answer = (state: RunState, trials: object[], sheetTrials: object[] = []) =>
  create(GetRunResponseSchema, {
    run: { id: 'r', state },
    sheet: new TextEncoder().encode(
      JSON.stringify({
        cell: {},
        radio: {},
        topology: {},
        treatments: [{ name: 'a', label: 'A' }],
        trials: sheetTrials,
      }),
    ),
    trials,
  })
const cell = (r: WatchedRun, trial = 0) => cellOf(r, r.trials.get(trial)!, marks(r.commands.values()))

describe('CampaignStore', () => {
  it('follows a trial from its start to its end', () => {
    const { m, r } = model(run(RunState.RUNNING), started(0), progress(0, 250))
    expect(cell(r)).toMatchObject({ kind: 'running', text: '25 %' })
    expect(r.current).toBe(0)
    apply(
      m,
      ended(0, 'succeeded', {
        throughputBytesPerSecond: 1024 * 100,
        measuredBytesPerSecond: 1024 * 100,
        elapsedSeconds: 2,
      }),
    )
    expect(cell(r)).toMatchObject({ kind: 'succeeded', text: '100 KB/s', glyph: '✓' })
    // Progress that comes late, or a stream that begins anew, changes nothing.
    apply(m, progress(0, 990))
    apply(m, started(0))
    expect(cell(r).kind).toBe('succeeded')
  })
  it('says of a trial of probes alone that it has measured, and no throughput', () => {
    const { m, r } = model(run(RunState.RUNNING), started(0), ended(0, 'succeeded', { elapsedSeconds: 20 }))
    m.load(answer(RunState.RUNNING, [], [{ index: 0, iteration: 1, treatment: 'a', flows: null }]))
    expect(cell(r)).toMatchObject({ kind: 'succeeded', text: 'measured', spoken: 'measured with probes in 20.0 s' })
  })
  it('tells a trial that was not needed from one that was skipped, and from one that was not run', () => {
    const { m, r } = model(run(RunState.COMPLETED))
    const row = (trial: number, more: object) => ({ trial, iteration: 1, treatment: 'a', ...more })
    m.load(
      answer(RunState.COMPLETED, [
        row(0, { verdict: 'aborted', notNeeded: true }),
        row(1, { verdict: 'aborted' }),
        row(2, {}),
      ]),
    )
    expect([0, 1, 2].map((t) => cell(r, t).kind)).toEqual(['not-needed', 'skipped', 'not-run'])
    expect(cell(r)).toMatchObject({ glyph: '◌', text: 'not needed', brief: '' })
  })
  it('says of a trial that was cut off by the end of its run that it has not ended', () => {
    const { m, r } = model(run(RunState.RUNNING), started(0))
    apply(m, run(RunState.ABORTED), 1000)
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
    apply(m, run(RunState.ABORTED))
    expect(cell(r, 0).kind).toBe('not-ended')
    expect(cell(r, 1).text).toBe('not run')
  })
  it('takes each journal line once and not without bound', () => {
    const { m } = model(run(RunState.RUNNING), line(1), line(2), line(2), line(1), line(1, 'server'))
    expect(m.journal.map((l) => `${l.node} ${l.seq}`)).toEqual(['client 1', 'client 2', 'server 1'])
    for (let i = 3; i < journalKept + 50; i++) apply(m, line(i))
    expect(m.journal).toHaveLength(journalKept)
    expect(m.journal.at(-1)!.seq).toBe(BigInt(journalKept + 49))
  })
  it('knows which node is silent', () => {
    const since = new Date('2026-01-01T00:00:00Z')
    const { m, r } = model(run(RunState.RUNNING), silence(since))
    expect(r.silent.get('client')?.since).toEqual(since)
    apply(m, silence())
    expect(r.silent.size).toBe(0)
  })
})

const samples = (trial: number, flow: number, at: number[]): Event => ({
  case: 'samples',
  value: create(LiveSamplesSchema, {
    runId: 'r',
    trial,
    flow,
    attempt: 1,
    at,
    bytes: at.map((s) => s * 1000),
    cwndBytes: at.map(() => 1),
    srttMs: at.map(() => 1),
  }),
})

/** Computes something of a store, as a page does: again only where what it has read has changed. */
async function follow<T>(of: () => T, change: () => void): Promise<{ before: T; after: T; times: number }> {
  const computes = vi.fn(of)
  const value = computed(computes)
  const seen = vi.fn()
  const scope = effectScope()
  scope.run(() => watch(value, seen))
  const before = value.value
  computes.mockClear()
  change()
  await nextTick()
  scope.stop()
  const after = value.value
  expect(seen.mock.calls.length).toBeLessThanOrEqual(computes.mock.calls.length)
  return { before, after, times: computes.mock.calls.length }
}

describe('what is computed of a CampaignStore', () => {
  const two = () => model(run(RunState.RUNNING), started(0), started(1), line(1))
  const received = (...events: Event[]) => events.map((event) => ({ event, at: 2000 }))

  it('follows runs that come', async () => {
    const { m } = model()
    const { before, after } = await follow(
      () => [...m.runs.values()].map((r) => r.run.state),
      () => apply(m, run(RunState.RUNNING)),
    )
    expect([before, after]).toEqual([[], [RunState.RUNNING]])
  })
  it('follows the state of a run, and what holds a node', async () => {
    const { m } = two()
    const of = () => [m.runs.get('r')!.run.state, m.runs.get('r')!.silent.size]
    const { after } = await follow(of, () => m.apply(received(run(RunState.STOPPED), silence(new Date(0)))))
    expect(after).toEqual([RunState.STOPPED, 1])
  })
  it('follows each trial, and marks by people', async () => {
    const { m, r } = two()
    const kinds = () => [...cellsOf(r).values()].map((c) => c.kind)
    const { after } = await follow(kinds, () => m.apply(received(ended(0, 'succeeded'), progress(1, 500))))
    expect(after).toEqual(['succeeded', 'running'])
    const marked = await follow(kinds, () => apply(m, command('1', 'exclude', { trial: 0, attempt: 1 })))
    expect(marked.after).toEqual(['invalid', 'running'])
  })
  it('follows the current trial, its progress, and the sheet once it is there', async () => {
    const { m, r } = two()
    const of = () => [r.current, r.trials.get(r.current ?? -1)?.running?.bytes, r.sheet?.rows.length]
    const { before, after } = await follow(of, () => {
      apply(m, progress(0, 700))
      m.load(answer(RunState.RUNNING, [], [{ index: 0, iteration: 1, treatment: 'a', flows: [{}] }]))
    })
    expect([before, after]).toEqual([
      [1, 0, undefined],
      [0, 700, 1],
    ])
  })
  it('follows journal and notes', async () => {
    const { m } = two()
    const note: Event = { case: 'note', value: create(NoteSchema, { runId: 'r', text: 'late' }) }
    const { after } = await follow(
      () => [m.journal.length, m.notes.length],
      () => m.apply(received(line(2), note, line(3), note)),
    )
    expect(after).toEqual([3, 1])
  })

  it('is computed once for all that a batch has changed', async () => {
    const { m, r } = two()
    const of = () => [cellsOf(r).size, m.journal.length, r.run.trialsEnded, m.runs.size]
    const events = Array.from({ length: 500 }, (_, i) => [
      started(i),
      progress(i, 100),
      line(i + 2),
      ended(i, 'succeeded'),
      run(RunState.RUNNING, { trialsEnded: i + 1 }),
    ])
    const { after, times } = await follow(of, () => m.apply(received(...events.flat())))
    expect(after).toEqual([500, 501, 500, 1])
    expect(times).toBe(1)
  })
  it('is not computed again for what it has not read', async () => {
    const { m, r } = two()
    const times = async (of: () => unknown, ...events: Event[]) =>
      (await follow(of, () => m.apply(received(...events)))).times
    expect(await times(() => cellsOf(r), line(2), silence(new Date(0)))).toBe(0)
    expect(await times(() => m.journal, progress(1, 1), ended(0, 'failed'), run(RunState.RUNNING))).toBe(0)
    expect(await times(() => r.trials.get(0), progress(1, 2))).toBe(0)
    expect(await times(() => r.run, progress(1, 3), line(3))).toBe(0)
    expect(await times(() => [cellsOf(r), m.journal], samples(1, 0, [0.1, 0.2]))).toBe(0)
  })
  it('reads values that are not reactive themselves, however many', () => {
    const { m, r } = two()
    m.load(
      answer(
        RunState.RUNNING,
        Array.from({ length: 10_000 }, (_, trial) => ({ trial, attempts: [{ attempt: 1, verdict: 'succeeded' }] })),
        [{ index: 0, iteration: 1, treatment: 'a', flows: [{}] }],
      ),
    )
    m.apply(received(samples(1, 0, [0.1])))
    const t = r.trials.get(9_999)!
    const parts = [t, t.attempts, t.attempts.get(1), r.run, r.sheet, m.journal, m.journal[0], m.seriesOf('r')]
    expect(parts).not.toContain(undefined)
    expect(parts.map(isReactive)).toEqual(parts.map(() => false))
  })
})

it('keeps samples by run, from the start of their trial', () => {
  const { m } = model(run(RunState.RUNNING), samples(0, 1, [0, 1]))
  expect(m.seriesOf('r').flows.get(1)!.at).toEqual([0, 1])
  const flows = [{}, { start_ns: 5e9 }]
  m.load(answer(RunState.RUNNING, [], [{ index: 2, iteration: 1, treatment: 'a', flows }]))
  apply(m, samples(2, 1, [0, 1]))
  expect(m.seriesOf('r').flows.get(1)!.at).toEqual([5, 6])
  expect(m.seriesOf('other').flows.size).toBe(0)
})

describe('cellOf', () => {
  it.each([
    ['failed', { reason: 'connect-timeout', message: 'no answer' }, 'failed', 'failed: connect timeout: no answer'],
    ['timed-out', { reason: 'transfer-timeout' }, 'timed-out', 'timed out: transfer timeout'],
    ['aborted', { reason: 'skipped' }, 'skipped', 'skipped'],
    ['aborted', { reason: 'not-needed', message: 'by the rule' }, 'not-needed', 'not needed: by the rule'],
    ['aborted', { reason: 'command' }, 'aborted', 'aborted: command'],
    ['invalid', { reason: 'clock-jump' }, 'invalid', 'invalid: clock jump'],
  ])('%s %o', (verdict, more, kind, spoken) => {
    const { r } = model(run(RunState.RUNNING), ended(0, verdict, more))
    expect(cell(r)).toMatchObject({ kind, spoken })
    expect(cell(r).glyph).not.toBe('')
  })
  it('keeps a marked value in sight, and gives it back', () => {
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
    apply(m, command('2', 'include', { trial: 0, attempt: 1, given: at(2) }))
    expect(cell(r).kind).toBe('succeeded')
  })
  it('keeps the value of what does not count', () => {
    const mark = { reason: 'rain', by: 'ada', journalVerdict: 'succeeded' }
    const { r } = model(
      run(RunState.RUNNING),
      ended(0, 'invalid', { reason: 'marked: rain', measuredBytesPerSecond: 2048, mark }),
    )
    expect(cell(r)).toMatchObject({ kind: 'invalid', text: '2.00 KB/s', aside: 'rain' })
  })
  it('takes the time as progress where a time bounds the flows', () => {
    const { m, r } = model(run(RunState.RUNNING), started(0), progress(0, 1))
    const flows = [{ duration_ns: 4e9 }]
    m.load(answer(RunState.RUNNING, [], [{ index: 0, iteration: 1, treatment: 'a', flows }]))
    expect(cell(r).text).toBe('25 %')
  })
  it('shows commands until they are applied', () => {
    const { m, r } = model(run(RunState.RUNNING), ended(0, 'failed'), command('1', 'repeat', { trial: 0 }))
    expect(cell(r).more).toBe('repeat requested')
    apply(m, command('1', 'repeat', { trial: 0, applied: timestampFromDate(new Date()) }))
    expect(cell(r).more).toBe('')
  })
})

describe('estimate', () => {
  it('counts down while a run moves, and not while it is held', () => {
    const { m } = model(run(RunState.RUNNING))
    expect(estimate(m, 11_000).left).toBe(90)
    expect(estimate(m, 11_000).finish).toEqual(new Date(101_000))
    apply(m, run(RunState.RUNNING, { paused: true }), 11_000)
    expect(estimate(m, 21_000)).toMatchObject({ left: 100, held: true, finish: undefined })
    apply(m, run(RunState.WAITING), 21_000)
    expect(estimate(m, 31_000)).toMatchObject({ left: 100, held: true })
    apply(m, run(RunState.COMPLETED), 31_000)
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
    apply(m, run(RunState.RUNNING, { campaignId: 'c', created: at(10), nodes: ['b'] }), 1000)
    expect(estimate(m, 1000, [other({})]).finish).toEqual(new Date(101_000))
  })
})
