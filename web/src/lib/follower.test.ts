import { create } from '@bufbuild/protobuf'
import { Code, ConnectError } from '@connectrpc/connect'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { WatchResponseSchema, type WatchResponse } from '@/gen/linktrial/v1/operator_pb'
import { Follower, quietMs, type Link } from './follower'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const event = (text: string) => create(WatchResponseSchema, { event: { case: 'note', value: { text } } })
const gone = () => new ConnectError('gone', Code.Unavailable)

type Part = WatchResponse | Error | 'hang'
/** Each list is one stream: messages, then an error, the end, or silence. */
function follower(streams: Part[][], probe: () => Promise<unknown> = async () => {}, endless = false) {
  const links: Link[] = []
  const texts: string[] = []
  let opened = 0
  const f = new Follower({
    open: async function* (signal) {
      for (const p of streams[opened++] ?? ['hang' as const]) {
        if (p instanceof Error) throw p
        if (p === 'hang')
          await new Promise((_, fail) =>
            signal.addEventListener('abort', () => fail(new ConnectError('stopped', Code.Canceled))),
          )
        else yield p
      }
    },
    probe,
    event: ({ event: e }) => e.case === 'note' && texts.push(e.value.text),
    endless,
    link: (l) => links.push(l),
  })
  return { f, links, texts, opened: () => opened }
}

it('says nothing before its owner knows it', async () => {
  let mine: Follower<WatchResponse> | undefined
  const heard: unknown[] = []
  const f = new Follower<WatchResponse>({
    open: async function* () {},
    probe: async () => {},
    event: () => {},
    link: () => heard.push(mine),
  })
  mine = f
  await f.done
  expect(heard.every((x) => x === f)).toBe(true)
})

it('ends with the campaign', async () => {
  const { f, links, texts } = follower([[event('a'), event('b')]])
  await f.done
  expect(texts).toEqual(['a', 'b'])
  expect(links.map((l) => l.state)).toEqual(['connecting', 'live', 'live', 'over'])
})

it('opens a stream without end again when it ends', async () => {
  const { f, links, texts } = follower([[event('a')], [event('b'), 'hang']], undefined, true)
  await vi.advanceTimersByTimeAsync(600)
  expect(texts).toEqual(['a', 'b'])
  expect(links.map((l) => l.state)).toEqual(['connecting', 'live', 'lost', 'live'])
  f.stop()
  await f.done
})

it('comes back by itself, waiting longer each time, and says since when', async () => {
  const { f, links, texts, opened } = follower([[event('a'), gone()], [gone()], [gone()], [event('b')]])
  await vi.advanceTimersByTimeAsync(0)
  expect(links.at(-1)).toMatchObject({ state: 'lost' })
  const since = links.at(-1)!.since!
  await vi.advanceTimersByTimeAsync(500)
  expect(opened()).toBe(2)
  expect(links.at(-1)).toMatchObject({ state: 'lost', since, retryAt: Date.now() + 1000 })
  await vi.advanceTimersByTimeAsync(999)
  expect(opened()).toBe(2)
  await vi.advanceTimersByTimeAsync(1)
  expect(links.at(-1)).toMatchObject({ since, retryAt: Date.now() + 2000 })
  await vi.advanceTimersByTimeAsync(2000)
  await f.done
  expect(texts).toEqual(['a', 'b'])
  expect(links.at(-1)!.state).toBe('over')
})

it('tries at once when asked', async () => {
  const { f, opened } = follower([[gone()], [event('a')]])
  await vi.advanceTimersByTimeAsync(0)
  f.now()
  await f.done
  expect(opened()).toBe(2)
})

it('does not try again what was refused', async () => {
  const { f, links } = follower([[new ConnectError('no such campaign', Code.NotFound)]])
  await f.done
  expect(links.at(-1)).toMatchObject({ state: 'refused' })
})

it('notices that a quiet stream is dead', async () => {
  const { f, links, opened } = follower([[event('a'), 'hang'], [event('b')]], async () => {
    throw gone()
  })
  await vi.advanceTimersByTimeAsync(quietMs - 100)
  expect(links.at(-1)!.state).toBe('live')
  await vi.advanceTimersByTimeAsync(200)
  expect(links.at(-1)!.state).toBe('lost')
  await vi.advanceTimersByTimeAsync(500)
  await f.done
  expect(opened()).toBe(2)
})

it('lets a stream be quiet while the orchestrator is there', async () => {
  const probe = vi.fn(async () => {})
  const { f, links } = follower([[event('a'), 'hang']], probe)
  await vi.advanceTimersByTimeAsync(60_000)
  expect(probe.mock.calls.length).toBeGreaterThan(5)
  expect(links.at(-1)!.state).toBe('live')
  f.stop()
  await f.done
  expect(vi.getTimerCount()).toBe(0)
})

it('stops while it waits', async () => {
  const { f, opened } = follower([[gone()], [event('a')]])
  await vi.advanceTimersByTimeAsync(0)
  f.stop()
  await f.done
  expect(opened()).toBe(1)
  expect(vi.getTimerCount()).toBe(0)
})
