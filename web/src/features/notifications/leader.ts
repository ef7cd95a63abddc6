// One tab of a browser works for all of them: it has the stream and shows what comes. Browsers open few connections
// to one address, so that a stream of each tab would leave none for the pages.

export interface LeadOptions {
  name: string
  /** Called when this tab begins to work; what it returns ends the work. */
  work(): () => void
  /** The browser's locks; undefined: it has none, as on pages that came unencrypted from another machine. */
  locks?: Pick<LockManager, 'request'>
  /** Whether a person can see this tab. */
  visible(): boolean
  /** Calls then when that changes; what it returns ends that. */
  onVisible(then: () => void): () => void
}

/**
 * Has this tab work while it holds the lock: it gets it when the tab that had it is closed. Without
 * locks every tab works while it is visible. What it returns ends both.
 */
export function lead(o: LeadOptions): () => void {
  let end: (() => void) | undefined
  const stopWork = () => {
    end?.()
    end = undefined
  }
  if (!o.locks) {
    const look = () => {
      if (!o.visible()) stopWork()
      else end ??= o.work()
    }
    look()
    const off = o.onVisible(look)
    return () => {
      off()
      stopWork()
    }
  }
  const waiting = new AbortController()
  let release = () => {}
  const held = new Promise<void>((done) => (release = done))
  o.locks
    .request(o.name, { signal: waiting.signal }, () => {
      if (waiting.signal.aborted) return
      end = o.work()
      return held
    })
    .catch(() => {
      // It was stopped while it waited.
    })
  return () => {
    waiting.abort()
    stopWork()
    release()
  }
}
