// Follows a stream of the orchestrator, and comes back by itself when it breaks: the
// runs go on at the nodes whether anybody watches or not.
import { Code, ConnectError } from '@connectrpc/connect'

export interface Link {
  /** refused: the orchestrator says that there is nothing to watch; trying again would not help. */
  state: 'connecting' | 'live' | 'lost' | 'over' | 'refused'
  /** Milliseconds of this machine's clock since when it is lost. */
  since?: number
  retryAt?: number
  error?: unknown
}

export interface FollowOptions<M> {
  open(signal: AbortSignal): AsyncIterable<M>
  /** Asks the orchestrator for anything small: a quiet stream may be a dead one. */
  probe(signal: AbortSignal): Promise<unknown>
  event(m: M): void
  link(l: Link): void
  /** What is followed has no end: a stream that ends is opened again. */
  endless?: boolean
  /** Another time than quietMs, in milliseconds. */
  quietMs?: number
}

const firstRetryMs = 500
const lastRetryMs = 10_000
/** After how long without a word the orchestrator is asked whether it is there. */
export const quietMs = 3_000
const probeMs = 3_300

const permanent = new Set([
  Code.NotFound,
  Code.InvalidArgument,
  Code.Unimplemented,
  Code.PermissionDenied,
  Code.Unauthenticated,
])

/** Follows one stream. Ends with it, unless that is endless, or when it is stopped. */
export class Follower<M> {
  private readonly end = new AbortController()
  private rest: (() => void) | undefined
  readonly done: Promise<void>

  constructor(private readonly o: FollowOptions<M>) {
    // Not before its owner knows it.
    this.done = Promise.resolve().then(() => this.run())
  }

  stop() {
    this.end.abort()
    this.rest?.()
  }

  /** Tries again at once where it waits for the next try. */
  now() {
    this.rest?.()
  }

  /** Milliseconds of this machine's clock at which the orchestrator was last heard of. */
  private heardAt = Date.now()

  private async run() {
    let retry = firstRetryMs
    let lostAt: number | undefined
    this.o.link({ state: 'connecting' })
    while (!this.end.signal.aborted) {
      let failure: unknown
      try {
        for await (const m of this.watched()) {
          if (lostAt !== undefined || retry !== firstRetryMs) {
            lostAt = undefined
            retry = firstRetryMs
          }
          this.o.link({ state: 'live' })
          this.o.event(m)
        }
        if (!this.o.endless) {
          if (!this.end.signal.aborted) this.o.link({ state: 'over' })
          return
        }
      } catch (e) {
        failure = e
      }
      if (this.end.signal.aborted) return
      if (failure !== undefined && permanent.has(ConnectError.from(failure).code)) {
        this.o.link({ state: 'refused', error: failure })
        return
      }
      lostAt ??= this.heardAt
      this.o.link({ state: 'lost', since: lostAt, retryAt: Date.now() + retry, error: failure })
      await this.sleep(retry)
      retry = Math.min(retry * 2, lastRetryMs)
    }
  }

  // The stream, broken off when the orchestrator does not answer a probe.
  private async *watched(): AsyncGenerator<M> {
    const stream = new AbortController()
    const stop = () => stream.abort()
    this.end.signal.addEventListener('abort', stop)
    let asking = false
    const opened = Date.now()
    let gone: unknown
    const watchdog = setInterval(async () => {
      if (asking || Date.now() - Math.max(opened, this.heardAt) < (this.o.quietMs ?? quietMs)) return
      asking = true
      const limit = new AbortController()
      const late = setTimeout(() => limit.abort(), probeMs)
      try {
        await this.o.probe(limit.signal)
        this.heardAt = Date.now()
      } catch (e) {
        gone = e
        stream.abort()
      } finally {
        clearTimeout(late)
        asking = false
      }
    }, 1000)
    try {
      for await (const m of this.o.open(stream.signal)) {
        this.heardAt = Date.now()
        yield m
      }
    } catch (e) {
      throw gone ?? e
    } finally {
      clearInterval(watchdog)
      this.end.signal.removeEventListener('abort', stop)
      stream.abort()
    }
    if (gone) throw gone
  }

  private async sleep(ms: number): Promise<void> {
    await new Promise<void>((done) => {
      const t = setTimeout(done, ms)
      this.rest = () => {
        clearTimeout(t)
        done()
      }
    })
    this.rest = undefined
  }
}
