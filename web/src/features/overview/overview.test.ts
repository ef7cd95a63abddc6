import { create } from '@bufbuild/protobuf'
import { timestampFromDate } from '@bufbuild/protobuf/wkt'
import { expect, test } from 'vitest'
import { ScheduledPlanSchema } from '@/gen/linktrial/v1/library_pb'
import { NodeBoundsSchema, NodeSchema, RunSchema, RunState } from '@/gen/linktrial/v1/operator_pb'
import { CampaignSchema, SummarizeResponseSchema } from '@/gen/linktrial/v1/result_pb'
import { outcomeOf } from './outcome'
import { openCampaigns } from './progress'
import { troubles } from './trouble'

const now = new Date('2026-11-23T15:00:00Z')
const before = (seconds: number) => timestampFromDate(new Date(now.getTime() - seconds * 1000))
const node = (name: string, more = {}) =>
  create(NodeSchema, { name, connected: true, lastContact: before(1), diskFreeBytes: 9n << 30n, ...more })
const run = (id: string, state: RunState, more = {}) =>
  create(RunSchema, {
    id: `c-${id}`,
    campaignId: 'c',
    plan: 'meadow',
    radio: 'hf',
    topology: 'far',
    sizeBytes: 1024n,
    state,
    trials: 10,
    ...more,
  })
const bounds = create(NodeBoundsSchema, {
  clockSeconds: 0.1,
  enoughCharge: 0.5,
  lowCharge: 0.2,
  enoughDiskBytes: 1n << 30n,
})
const titles = (k: Partial<Parameters<typeof troubles>[0]>) =>
  troubles({ runs: [], nodes: [], bounds, schedules: [], ...k }, now).map((t) =>
    `${t.tone}: ${t.title} ${t.text}`.trim(),
  )

test('nodes: charge, clock, disk and faults are measured by the preflight’s bounds', () => {
  expect(
    titles({
      nodes: [node('fine', { battery: 0.55, discharging: true, clockOffsetKnown: true, clockOffsetSeconds: 0.1 })],
    }),
  ).toEqual([])
  expect(titles({ nodes: [node('mains', { battery: 0.1 }), node('unknown', { clockOffsetSeconds: 5 })] })).toEqual([])
  expect(
    titles({
      nodes: [
        node('a', { battery: 0.49, discharging: true }),
        node('b', { battery: 0.19, discharging: true, clockOffsetKnown: true, clockOffsetSeconds: -0.25 }),
        node('c', { faults: ['the radio’s interface is missing'], diskFreeBytes: 100n << 20n }),
      ],
    }),
  ).toEqual([
    'bad: Battery of b at 19 %, discharging. Connect the node to a supply, or change its battery.',
    'bad: c: the radio’s interface is missing.',
    'warn: Battery of a at 49 %, discharging. Connect the node to a supply, or change its battery.',
    'warn: Clock of b is 250 ms ahead of the orchestrator’s. Expected within 100 ms: times of different nodes in one chart do not fit together.',
    'warn: c has 100 MiB of disk free. Journals need at least 1 GiB.',
  ])
})

test('a node without contact is trouble in a run, and for an hour where it is a real one', () => {
  const away = { connected: false, lastContact: before(40) }
  const lost = run('1', RunState.RUNNING, { noContact: [{ node: 'relay', since: before(40) }] })
  expect(titles({ runs: [lost], nodes: [node('relay', away)] })).toEqual([
    'bad: No contact with relay since 14:59:20 UTC, 40 s. It takes part in meadow. Whether the run continues there is not known; records that the node keeps arrive when contact is back.',
  ])
  expect(titles({ nodes: [node('relay', away)] })).toEqual([
    'warn: No contact with relay since 14:59:20 UTC, 40 s. It takes part in no run.',
  ])
  expect(
    titles({
      nodes: [node('relay', { ...away, emulated: true }), node('old', { ...away, lastContact: before(4000) })],
    }),
  ).toEqual([])
})

test('a paused run says who paused it and why', () => {
  expect(titles({ runs: [run('1', RunState.RUNNING, { paused: true, pausing: true })] })).toEqual([])
  expect(
    titles({
      runs: [
        run('1', RunState.RUNNING, { paused: true }),
        run('2', RunState.RUNNING, { paused: true, pauseReason: 'the relay does not answer' }),
      ],
    }),
  ).toEqual([
    'bad: The leading node paused meadow. The relay does not answer.',
    'warn: meadow is paused. A command paused it: it waits for Resume.',
  ])
})

test('a scheduled start that failed, was missed or is late is trouble for a day', () => {
  const start = (state: string, seconds: number, message = '') =>
    create(ScheduledPlanSchema, { id: `${state}${seconds}`, plan: 'meadow', state, at: before(seconds), message })
  expect(
    titles({
      schedules: [
        start('waiting', -60),
        start('waiting', 10),
        start('waiting', 60),
        start('waiting', 61, 'is tried until 15:01:00 UTC: no relay node is connected'),
        start('failed', 3600, 'no node is connected: start one\nno relay either\nnor a server'),
        start('missed', 90_000),
        start('started', 60),
        start('cancelled', 60),
      ],
    }),
  ).toEqual([
    'bad: meadow, scheduled for 14:59:00 UTC, has not started yet. Its time passed 1 min 0 s ago.',
    'bad: meadow, scheduled for 14:58:59 UTC, has not started yet. Its time passed 1 min 1 s ago. Is tried until 15:01:00 UTC: no relay node is connected.',
    'bad: meadow, scheduled for 14:00:00 UTC, did not start. No node is connected: start one, and 2 more problems.',
  ])
})

test('an open campaign: all its trials, the run it is at, the next one, and whether it moves', () => {
  const campaign = create(CampaignSchema, { id: 'c', name: 'evening', runs: 4, trials: 40, trialsEnded: 13 })
  const open = [
    run('4', RunState.QUEUED, { estimatedSecondsLeft: 20, sizeBytes: 2048n }),
    run('3', RunState.QUEUED, { estimatedSecondsLeft: 20, settings: 'loss 0.1' }),
    run('2', RunState.RUNNING, { estimatedSecondsLeft: 5, trialsEnded: 3 }),
  ]
  expect(openCampaigns(open, [campaign])).toMatchObject([
    {
      id: 'c',
      name: 'evening',
      where: 'Run 2 of 4: hf, far, 1 KiB',
      next: 'hf, far, 1 KiB, loss 0.1',
      waits: '',
      trialsEnded: 13,
      trials: 40,
      left: 45,
      moves: true,
    },
  ])
  const held = [run('1', RunState.QUEUED, { waitingFor: ['run b-1 on client'] })]
  expect(openCampaigns(held, [])).toMatchObject([
    {
      name: 'meadow',
      where: 'hf, far, 1 KiB',
      waits: 'run b-1 on client',
      next: '',
      trialsEnded: 0,
      trials: 10,
      moves: false,
    },
  ])
  expect(openCampaigns([run('1', RunState.RUNNING, { paused: true })], [])[0]!.moves).toBe(false)
})

test('the outcome of one run is its lead, of several who leads most', () => {
  const of = (...leads: [string, string, boolean][]) =>
    outcomeOf(
      create(SummarizeResponseSchema, {
        runs: leads.map(([text, leader, decided]) => ({
          treatments: [
            { valid: 3, planned: 4 },
            { valid: 2, planned: 4 },
          ],
          lead: text ? { text, leader, decided } : undefined,
        })),
      }),
    )
  expect(of(['A leads B by 3 %: decided', 'A', true])).toEqual({
    valid: 5,
    planned: 8,
    text: 'A leads B by 3 %: decided',
    last: expect.any(Object),
  })
  expect(of(['', '', false]).text).toBe('')
  expect(of(['', '', false], ['', '', false]).text).toBe('')
  expect(of(['A leads B by 3 %: decided', 'A', true], ['', '', false]).text).toBe(
    'A leads B by 3 %: decided, in 1 of 2 runs',
  )
  expect(of(['x', 'A', true], ['x', 'A', false], ['x', 'B', true])).toEqual({
    valid: 15,
    planned: 24,
    text: 'A leads in 2 of 3 runs: 1 decided',
    last: expect.any(Object),
  })
  expect(of(['noise', '', false], ['noise', '', false]).text).toBe('No treatment leads in any of 2 runs')
})

test('a campaign that a fault of a node stopped is trouble for a day, with the reason', () => {
  const stopped = (seconds: number, more = {}) =>
    create(CampaignSchema, { id: 'c', name: 'meadow', endedAs: RunState.STOPPED, ended: before(seconds), ...more })
  expect(titles({ campaigns: [stopped(60, { message: 'the disk of server is full' })] })).toEqual([
    'bad: meadow was stopped at 14:59:00 UTC. The disk of server is full.',
  ])
  expect(titles({ campaigns: [stopped(25 * 3600)] })).toEqual([])
  expect(titles({ campaigns: [stopped(60, { endedAs: RunState.ABORTED })] })).toEqual([])
})

test('the values of a campaign are those of its last run that has some', () => {
  const one = { name: 'a', label: 'A', valid: 2, attempted: 3, average: 2048, min: 1024, max: 3072 }
  const s = create(SummarizeResponseSchema, {
    runs: [
      { topologyTitle: 'Near', radioTitle: 'HF', run: { sizeBytes: 1024n }, treatments: [{ name: 'old', valid: 1 }] },
      {
        topologyTitle: 'Far',
        radioTitle: 'HF',
        run: { sizeBytes: 1024n },
        settings: [{ axis: 'loss', label: '0.1' }],
        treatments: [one, { name: 'b', missing: 'not built' }, { name: 'c', attempted: 3 }],
      },
      { topologyTitle: 'Queued', treatments: [{ name: 'a' }] },
    ],
  })
  expect(outcomeOf(s).last).toEqual({ where: 'Far · HF · 1 KiB · loss 0.1', rows: [one] })
  expect(outcomeOf(create(SummarizeResponseSchema, {})).last).toBeUndefined()
})
