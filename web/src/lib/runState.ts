// A run's state for people.
import { RunState, type Run } from '@/gen/linktrial/v1/operator_pb'

export interface StateWords {
  glyph: string
  word: string
  tone: 'ok' | 'warn' | 'bad' | 'run' | 'none'
}

const words: Record<RunState, StateWords> = {
  [RunState.UNSPECIFIED]: { glyph: '?', word: 'not known', tone: 'none' },
  [RunState.QUEUED]: { glyph: '…', word: 'queued', tone: 'none' },
  [RunState.PREPARING]: { glyph: '◔', word: 'preparing', tone: 'run' },
  [RunState.RUNNING]: { glyph: '▶', word: 'running', tone: 'run' },
  [RunState.COLLECTING]: { glyph: '⇣', word: 'collecting', tone: 'run' },
  [RunState.COMPLETED]: { glyph: '✓', word: 'completed', tone: 'ok' },
  [RunState.ABORTED]: { glyph: '■', word: 'aborted', tone: 'warn' },
  [RunState.STOPPED]: { glyph: '✕', word: 'stopped', tone: 'bad' },
  [RunState.WAITING]: { glyph: '⚑', word: 'waiting for the move', tone: 'warn' },
}

export function runState(run: Pick<Run, 'state' | 'paused' | 'pausing'>): StateWords {
  if (run.state === RunState.RUNNING && run.paused) return { glyph: '❚❚', word: 'paused', tone: 'warn' }
  if (run.state === RunState.RUNNING && run.pausing) return { glyph: '❚❚', word: 'pausing', tone: 'warn' }
  return words[run.state]
}

export function isOpen(run: Pick<Run, 'state'>): boolean {
  return ![RunState.COMPLETED, RunState.ABORTED, RunState.STOPPED].includes(run.state)
}
