// Summaries for the tests of the results pages; imported by tests alone.
import { create } from '@bufbuild/protobuf'
import { RunSummarySchema, type RunSummary } from '@/gen/linktrial/v1/result_pb'
import { RunState } from '@/gen/linktrial/v1/operator_pb'

export interface Attempted {
  iteration: number
  treatment: number
  /** KB/s; 0: failed. */
  kbps: number
  reason?: string
}

export function summaryOf(o: {
  id: string
  campaign?: string
  radio?: string
  topology?: string
  sizeBytes?: bigint
  setting?: string
  treatments?: string[]
  missing?: string
  state?: RunState
  attempts?: Attempted[]
}): RunSummary {
  const names = o.treatments ?? ['cubic', 'udt']
  const attempts: Attempted[] =
    o.attempts ??
    names.flatMap((_, treatment) =>
      [1, 2, 3].map((iteration) => ({ iteration, treatment, kbps: 100 * (treatment + 1) + iteration })),
    )
  const r = create(RunSummarySchema, {
    run: {
      id: o.id,
      campaignId: o.campaign ?? 'c1',
      plan: 'plan',
      radio: o.radio ?? 'r1',
      topology: o.topology ?? 't1',
      sizeBytes: o.sizeBytes ?? 1048576n,
      state: o.state ?? RunState.COMPLETED,
      trials: attempts.length,
      trialsEnded: attempts.length,
      place: 'emulated, real time',
    },
    radioTitle: `Radio ${o.radio ?? 'r1'}`,
    topologyTitle: `Place ${o.topology ?? 't1'}`,
    iterations: Math.max(1, ...attempts.map((a) => a.iteration)),
    settings: o.setting ? [{ axis: 'loss', label: o.setting }] : [],
    treatments: names.map((name, k) => {
      const mine = attempts.filter((a) => a.treatment === k)
      const values = mine.filter((a) => a.kbps > 0).map((a) => a.kbps * 1024)
      const mean = values.reduce((a, b) => a + b, 0) / (values.length || 1)
      return {
        name,
        label: name.toUpperCase(),
        protocol: 'tcp',
        missing: o.missing === name ? 'no driver' : '',
        valid: values.length,
        attempted: mine.length,
        failed: mine.length - values.length,
        planned: mine.length,
        average: mean,
        min: Math.min(...values),
        max: Math.max(...values),
        sd: 1024,
        median: mean,
        idealAverage: values.length ? (1024 * 1024) / 2 : undefined,
        codedBoundAverage: values.length ? (1024 * 1024) / 2.5 : undefined,
      }
    }),
    points: {
      trial: attempts.map((_, i) => i),
      attempt: attempts.map(() => 1),
      iteration: attempts.map((a) => a.iteration),
      treatment: attempts.map((a) => a.treatment),
      verdict: attempts.map((a) => (a.kbps > 0 ? 1 : 3)),
      throughput: attempts.map((a) => a.kbps * 1024),
      elapsed: attempts.map((a) => (a.kbps > 0 ? 1024 / a.kbps : 0)),
      ideal: attempts.map((a) => (a.kbps > 0 ? 2 : 0)),
      codedBound: attempts.map((a) => (a.kbps > 0 ? 2.5 : 0)),
      counts: attempts.map((a) => a.kbps > 0),
      reason: Object.fromEntries(attempts.flatMap((a, i) => (a.reason ? [[i, a.reason]] : []))),
    },
  })
  return r
}
