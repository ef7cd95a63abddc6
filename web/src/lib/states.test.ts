import { expect, test } from 'vitest'
import { RunState } from '@/gen/linktrial/v1/operator_pb'
import {
  attentionState,
  digestKind,
  digestStates,
  ended,
  fleetState,
  linkState,
  nodeState,
  notificationChannelState,
  runState,
  trialStates,
  verdictState,
} from './states'

const of = (state: RunState, more = {}) => runState({ state, paused: false, pausing: false, ...more })

test('every state of a run has its word and its tone', () => {
  const all = Object.values(RunState).filter((s): s is RunState => typeof s === 'number')
  expect(all.map((s) => `${of(s).word}: ${of(s).tone}`)).toEqual([
    'unknown: muted',
    'queued: muted',
    'preparing: run',
    'running: run',
    'collecting journals: run',
    'completed: ok',
    'aborted: warn',
    'stopped: bad',
    'waiting for the nodes to be moved: warn',
  ])
  expect(all.filter(ended).map((s) => of(s).word)).toEqual(['completed', 'aborted', 'stopped'])
})
test('a run pauses at the end of a trial', () => {
  expect(of(RunState.RUNNING, { pausing: true }).word).toBe('pausing')
  expect(of(RunState.RUNNING, { paused: true }).word).toBe('paused')
  expect(of(RunState.ABORTED, { paused: true }).word).toBe('aborted')
})
test('a run is aborting until its nodes have ended their parts', () => {
  expect(of(RunState.RUNNING, { aborting: true, paused: true }).word).toBe('aborting')
  expect(of(RunState.ABORTED, { aborting: false }).word).toBe('aborted')
})
test('a node in a run with in-band control is silent, and not missed', () => {
  expect(nodeState(false, true)).toMatchObject({ word: 'silent, in-band', tone: 'muted' })
  expect(nodeState(true, true).word).toBe('connected')
  expect(fleetState(0, 3, 3)).toMatchObject({ word: '0 of 3 nodes connected, 3 silent, in-band', tone: 'muted' })
  expect(fleetState(1, 3, 1).tone).toBe('warn')
  expect(fleetState(0, 3).word).toBe('no node is connected')
})
test('a campaign in virtual time is stored when its trials are over, whatever its runs wait for', () => {
  const run = (state: RunState, more = {}) => ({
    state,
    paused: false,
    pausing: false,
    virtual: true,
    campaignId: 'c',
    guestsEnded: false,
    ...more,
  })
  const waiting = [run(RunState.PREPARING), run(RunState.QUEUED)]
  expect(waiting.map((r) => runState(r, waiting).word)).toEqual(Array(2).fill('running in virtual time'))
  const stored = [run(RunState.COMPLETED, { guestsEnded: true }), run(RunState.RUNNING), run(RunState.QUEUED)]
  expect(stored.map((r) => runState(r, stored).word)).toEqual(['completed', 'storing', 'storing'])
  const other = run(RunState.QUEUED, { campaignId: 'd' })
  expect(runState(other, stored).word).toBe('running in virtual time')
})
test('what a person aborted is amber for trials, too; a fault is red', () => {
  expect(trialStates.aborted.tone).toBe('warn')
  expect(verdictState('timed-out')).toEqual({ glyph: '◷', word: 'timed out', tone: 'bad' })
  expect(verdictState('')).toBe(trialStates.running)
  expect(verdictState('of tomorrow').word).toBe('of tomorrow')
})
test('a link that loses much is amber, and one that does not answer is red', () => {
  expect([linkState(true, 0.05), linkState(true, 0.06), linkState(false, 1)].map((s) => s.tone)).toEqual([
    'ok',
    'warn',
    'bad',
  ])
})
test('what needs attention is counted, and red where it is a fault', () => {
  expect(attentionState(0, false)).toMatchObject({ word: 'nothing needs attention', tone: 'ok' })
  expect(attentionState(1, false)).toMatchObject({ word: '1 needs attention', tone: 'warn' })
  expect(attentionState(2, true)).toMatchObject({ word: '2 need attention', tone: 'bad' })
})
test('a digest is compared where both ends have said theirs', () => {
  expect([digestKind('', ''), digestKind('a', ''), digestKind('a', 'a'), digestKind('a', 'b')]).toEqual([
    'none',
    'unknown',
    'same',
    'other',
  ])
  expect(digestStates.other).toMatchObject({ glyph: '✕', word: 'differs', tone: 'bad' })
})
test('how deliveries of notifications go: off, an error, what waits, and then what arrived', () => {
  const of = (more: object) => notificationChannelState({ off: false, error: '', waiting: 0, delivered: 0, ...more })
  expect(of({}).word).toBe('nothing sent yet')
  expect(of({ delivered: 2 })).toMatchObject({ word: 'delivered', tone: 'ok' })
  expect(of({ delivered: 2, waiting: 1 }).word).toBe('delivering')
  expect(of({ waiting: 1, error: '500' })).toMatchObject({ word: 'last delivery failed', tone: 'bad' })
  expect(of({ off: true, error: '500' }).word).toBe('off')
})
