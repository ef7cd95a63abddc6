// What one cell of the matrix shows: a glyph, words and a colour, never colour alone.
import type { Command } from '@/gen/linktrial/v1/control_pb'
import type { AttemptRow } from '@/gen/linktrial/v1/operator_pb'
import { inKilobytes, rate, rateIn, rateUnit, wholePercent } from '@/lib/number'
import { seconds } from '@/lib/format'
import { ended, trialStates, type TrialKind } from '@/lib/states'
import type { Trial, WatchedRun } from './campaignStore'

export interface Cell {
  kind: TrialKind
  glyph: string
  /** Short, for the cell. */
  text: string
  /** Shorter still, for a cell of many columns; empty where the glyph says it. */
  brief: string
  /** A second, smaller line. */
  more: string
  /** A whole sentence, on hover and when it is announced. */
  spoken: string
  /** What a screen reader says after the two lines: what glyph and colour mean. */
  aside: string
}

/** The kinds that the legend below the matrix explains. */
export const legend: { kind: TrialKind; glyph: string; text: string }[] = (
  [
    'succeeded',
    'failed',
    'timed-out',
    'aborted',
    'skipped',
    'not-needed',
    'invalid',
    'not-ended',
    'running',
    'waiting',
  ] as const
).map((kind) => ({
  kind,
  glyph: trialStates[kind].glyph,
  text: trialStates[kind].word + (kind === 'succeeded' ? ', with its throughput where it has one' : ''),
}))

/** Marks by people, by trial and attempt: the last word holds. */
export function marks(commands: Iterable<Command>): Map<string, Command> {
  const out = new Map<string, Command>()
  const sorted = [...commands]
    .filter((o) => o.kind === 'exclude' || o.kind === 'include')
    .sort(
      (a, b) =>
        Number(a.given?.seconds ?? 0n) - Number(b.given?.seconds ?? 0n) ||
        (a.given?.nanos ?? 0) - (b.given?.nanos ?? 0),
    )
  for (const o of sorted) {
    const key = `${o.trial ?? 0}/${o.attempt}`
    if (o.kind === 'exclude') out.set(key, o)
    else out.delete(key)
  }
  return out
}

/** What keeps an attempt from counting, by a person's word: the row has it once it was read anew, the command before. */
export function markOf(
  trial: number,
  a: AttemptRow,
  marked: Map<string, Command>,
): { reason: string; by: string } | undefined {
  return marked.get(`${trial}/${a.attempt}`) ?? a.mark
}

/** The command to a trial that the leading agent has not applied yet. */
export function pendingFor(run: Pick<WatchedRun, 'commands'>, trial: number): Command | undefined {
  for (const o of run.commands.values())
    if (o.trial === trial && !o.applied && (o.kind === 'skip' || o.kind === 'repeat')) return o
  return undefined
}

export function reasonText(a: { reason: string; message: string }): string {
  return [a.reason.replaceAll('-', ' '), a.message].filter(Boolean).join(': ')
}

export function kindOf(a: AttemptRow): TrialKind {
  if (a.verdict === 'aborted' && a.reason === 'skipped') return 'skipped'
  if (a.verdict === 'aborted' && a.reason === 'not-needed') return 'not-needed'
  return (
    (['succeeded', 'failed', 'timed-out', 'aborted', 'invalid'] as TrialKind[]).find((k) => k === a.verdict) ?? 'failed'
  )
}

/** The cells of all trials of a run, by trial. */
export function cellsOf(watched: WatchedRun): Map<number, Cell> {
  // Read once, not once for each of many thousand trials.
  const run = { run: watched.run, sheet: watched.sheet, commands: new Map(watched.commands) }
  const marked = marks(run.commands.values())
  const out = new Map<number, Cell>()
  for (const t of watched.trials.values()) out.set(t.trial, cellOf(run, t, marked))
  return out
}

export function cellOf(
  run: Pick<WatchedRun, 'run' | 'sheet' | 'commands'>,
  t: Trial,
  marked: Map<string, Command>,
): Cell {
  const tries = t.attempts.size
  const again = tries > 1 ? `attempt ${Math.max(...t.attempts.keys())}` : ''
  const command = pendingFor(run, t.trial)
  const ordered = command ? (command.kind === 'skip' ? 'skip requested' : 'repeat requested') : ''
  const whole = (kind: TrialKind, text: string, more: string, spoken: string, aside = '', brief = text): Cell => ({
    kind,
    glyph: trialStates[kind].glyph,
    text,
    brief,
    more: [more, again, ordered].filter(Boolean).join(', '),
    spoken,
    aside,
  })

  if (t.running) {
    const r = t.running
    const duration = run.sheet?.durations.get(t.trial)
    const done = duration ? r.elapsedSeconds / duration : r.sizeBytes > 0 ? r.bytes / r.sizeBytes : 0
    const { word } = trialStates.running
    const share = done > 0 ? Math.min(1, done) : undefined
    return {
      ...whole(
        'running',
        share === undefined ? word : wholePercent(share),
        '',
        `${word}, ${share === undefined ? 'connecting' : wholePercent(share)}`,
        share === undefined ? '' : word,
        share === undefined ? '' : wholePercent(share),
      ),
      more: [r.attempt > 1 ? `attempt ${r.attempt}` : '', ordered].filter(Boolean).join(', '),
    }
  }
  const last = t.attempts.get(Math.max(...t.attempts.keys()))
  if (!last) {
    const over = trialStates['not-ended'].word
    if (ended(run.run.state) && t.cut) return whole('not-ended', over, '', `${over}: the run was over before`, '', '')
    if (ended(run.run.state))
      return {
        kind: 'not-run',
        glyph: trialStates['not-run'].glyph,
        text: trialStates['not-run'].word,
        brief: '',
        more: '',
        spoken: trialStates['not-run'].word,
        aside: '',
      }
    return whole('waiting', ordered || trialStates.waiting.word, '', ordered || trialStates.waiting.word, '', ordered)
  }
  const mark = markOf(t.trial, last, marked)
  const measured = last.measuredBytesPerSecond
  const speed = measured > 0 ? rate(measured, 0) : ''
  // KB/s, which the page says, need no unit.
  const number = rateUnit(measured) === inKilobytes ? rateIn(inKilobytes, measured, 0) : speed
  if (mark || last.verdict === 'invalid') {
    const why = mark?.reason || reasonText(last)
    return whole(
      'invalid',
      speed || trialStates.invalid.word,
      trialStates.invalid.word,
      `${trialStates.invalid.word}: ${why}${speed ? `, ${speed}` : ''}`,
      why,
      speed ? number : trialStates.invalid.word,
    )
  }
  const kind = kindOf(last)
  if (kind === 'succeeded' && run.sheet?.probeTrials.has(t.trial)) {
    const spoken = `measured with probes in ${seconds(last.elapsedSeconds)}`
    return whole(kind, 'measured', '', spoken, spoken, '')
  }
  if (kind === 'succeeded')
    return whole(
      kind,
      speed || '0 KB/s',
      '',
      `${trialStates.succeeded.word}, ${speed}, in ${seconds(last.elapsedSeconds)}`,
      `${trialStates.succeeded.word} in ${seconds(last.elapsedSeconds)}`,
      speed ? number : '0',
    )
  const word = trialStates[kind].word
  if (kind === 'not-needed') return whole(kind, word, '', `${word}: ${last.message}`, last.message, '')
  const why = kind === 'skipped' ? '' : last.reason.replaceAll('-', ' ')
  return whole(kind, word, why, `${word}${why ? `: ${reasonText(last)}` : ''}`, why ? last.message : '')
}
