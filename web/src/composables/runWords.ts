// The state of a run in words, with a glyph and a tone.
import type { Run } from '@/gen/linktrial/v1/operator_pb'
import { RunState } from '@/gen/linktrial/v1/operator_pb'
import { seconds } from '@/lib/format'

/** Seconds that go by while one looks: whole ones, "13 s". */
export function counted(s: number): string {
  const whole = Math.max(0, Math.round(s))
  return whole < 60 ? `${whole} s` : seconds(whole)
}

export type Tone = 'ok' | 'warn' | 'bad' | 'run' | 'muted'
export interface StateWords {
  glyph: string
  text: string
  tone: Tone
}

const states: Record<RunState, [string, string, Tone]> = {
  [RunState.UNSPECIFIED]: ['?', 'unknown', 'muted'],
  [RunState.QUEUED]: ['·', 'waits for its turn', 'muted'],
  [RunState.PREPARING]: ['◔', 'being prepared', 'run'],
  [RunState.RUNNING]: ['▶', 'running', 'run'],
  [RunState.COLLECTING]: ['↓', 'done, journals are on their way', 'run'],
  [RunState.COMPLETED]: ['✓', 'completed', 'ok'],
  [RunState.ABORTED]: ['■', 'aborted', 'bad'],
  [RunState.STOPPED]: ['✕', 'stopped', 'bad'],
  [RunState.WAITING]: ['!', 'waits for the nodes to be moved', 'warn'],
}

export function stateWords(r: Pick<Run, 'state' | 'paused' | 'pausing'>): StateWords {
  if (r.state === RunState.RUNNING || r.state === RunState.PREPARING) {
    if (r.pausing) return { glyph: '‖', text: 'pauses after this trial', tone: 'warn' }
    if (r.paused) return { glyph: '‖', text: 'paused', tone: 'warn' }
  }
  const [glyph, text, tone] = states[r.state] ?? states[RunState.UNSPECIFIED]
  return { glyph, text, tone }
}
