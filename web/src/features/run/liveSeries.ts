// The samples of the attempt that runs, for moving lines: a fixed window of
// plain arrays, outside of Vue.
import type { LiveSamples } from '@/gen/linktrial/v1/operator_pb'
import { KB } from '@/lib/number'

/** Seconds that the lines show. */
export const windowSeconds = 60
const steps = [5, 10, 20, 30, windowSeconds]
/** Throughput is taken over this time: from sample to sample it only jumps. */
export const rateSeconds = 0.5

export interface LiveFlow {
  flow: number
  treatment: string
  at: number[]
  bytes: number[]
  /** [seconds, bytes per second], [seconds, KB]; 1 KB is 1024 bytes. */
  rate: [number, number][]
  cwnd: [number, number][]
  srttMs: number
}

export class LiveSeries {
  readonly flows = new Map<number, LiveFlow>()
  /** Seconds of the newest sample. */
  end = 0
  /** Raised with every change. */
  version = 0
  /** The trial that the samples are of. */
  trial?: number
  private key = ''

  /** offset: seconds from the trial's start to the flow's. */
  add(s: LiveSamples, offset = 0): void {
    const key = `${s.runId} ${s.trial} ${s.attempt}`
    if (key !== this.key) {
      this.key = key
      this.trial = s.trial
      this.flows.clear()
      this.end = 0
    }
    let f = this.flows.get(s.flow)
    if (!f)
      this.flows.set(
        s.flow,
        (f = { flow: s.flow, treatment: s.treatment, at: [], bytes: [], rate: [], cwnd: [], srttMs: Number.NaN }),
      )
    for (let i = 0; i < s.at.length; i++) {
      const at = s.at[i]! + offset
      // A stream that begins anew may say again what is known.
      if (f.at.length && at <= f.at[f.at.length - 1]!) continue
      f.at.push(at)
      f.bytes.push(s.bytes[i] ?? Number.NaN)
      const rate = rateAt(f)
      if (Number.isFinite(rate)) f.rate.push([at, rate])
      const cwnd = s.cwndBytes[i]
      if (cwnd !== undefined && Number.isFinite(cwnd)) f.cwnd.push([at, cwnd / KB])
      const srtt = s.srttMs[i]
      if (srtt !== undefined && Number.isFinite(srtt)) f.srttMs = srtt
      this.end = Math.max(this.end, at)
    }
    for (const x of this.flows.values()) trim(x, this.end - windowSeconds - 2 * rateSeconds)
    this.version++
  }

  /** The window's ends in seconds: it fills in a few steps, and moves then. */
  range(): [number, number] {
    const width = steps.find((s) => this.end <= s)
    return width ? [0, width] : [this.end - windowSeconds, this.end]
  }
}

function rateAt(f: LiveFlow): number {
  const last = f.at.length - 1
  let from = last - 1
  while (from > 0 && f.at[last]! - f.at[from]! < rateSeconds) from--
  if (from < 0) return Number.NaN
  return (f.bytes[last]! - f.bytes[from]!) / (f.at[last]! - f.at[from]!)
}

// In blocks: shifting on every sample would move the arrays again and again.
function trim(f: LiveFlow, before: number) {
  const old = f.at.findIndex((x) => x >= before)
  if (old < 64) return
  f.at.splice(0, old)
  f.bytes.splice(0, old)
  f.rate.splice(
    0,
    f.rate.findIndex((p) => p[0] >= before),
  )
  f.cwnd.splice(
    0,
    Math.max(
      0,
      f.cwnd.findIndex((p) => p[0] >= before),
    ),
  )
}
