// What comes one by one, handed over together once a frame.

/** A page that is not in sight has no frames: so often it takes what came all the same, so that nothing piles up. */
const unseenMs = 1000

export interface PerFrame<T> {
  add(item: T): void
  /** Hands over at once what is there. */
  flush(): void
  /** Hands over nothing more. */
  stop(): void
}

export function perFrame<T>(take: (batch: T[]) => void): PerFrame<T> {
  let batch: T[] = []
  let frame = 0
  let timer = 0
  function clear(): T[] {
    cancelAnimationFrame(frame)
    window.clearTimeout(timer)
    const all = batch
    batch = []
    return all
  }
  function flush() {
    const all = clear()
    if (all.length) take(all)
  }
  return {
    add(item) {
      if (batch.push(item) > 1) return
      frame = requestAnimationFrame(flush)
      timer = window.setTimeout(flush, unseenMs)
    },
    flush,
    stop: clear,
  }
}
