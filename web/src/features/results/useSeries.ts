// What the page of one attempt asks of the orchestrator.
import { useQuery } from '@tanstack/vue-query'
import { computed, markRaw, type Ref } from 'vue'
import { RunState } from '@/gen/linktrial/v1/operator_pb'
import { results } from '@/lib/api'
import { ended } from '@/lib/states'

/** Points of each series: about two for each pixel of a laptop's screen. */
const points = 1500

export interface AttemptKey {
  run: string
  trial: number
  attempt: number
}

export function useAttempt(key: Ref<AttemptKey>) {
  return useQuery({
    queryKey: computed(() => ['attempt', key.value]),
    queryFn: async ({ signal }) =>
      markRaw(
        await results.getAttempt(
          { runId: key.value.run, trial: key.value.trial, attempt: key.value.attempt },
          { signal },
        ),
      ),
    refetchInterval: (q) =>
      q.state.data && !q.state.data.trial?.verdict && !ended(q.state.data.run?.state ?? RunState.UNSPECIFIED)
        ? 3000
        : false,
    shallow: true,
    structuralSharing: false,
  })
}

/** The series of one attempt: whole, or between two moments in finer steps. */
export function useAttemptSeries(
  key: Ref<AttemptKey>,
  span: Ref<{ from: number; to: number } | undefined>,
  open: Ref<boolean>,
) {
  return useQuery({
    queryKey: computed(() => ['series', key.value, span.value]),
    queryFn: async ({ signal }) =>
      markRaw(
        await results.series(
          {
            runId: key.value.run,
            trial: key.value.trial,
            attempt: key.value.attempt,
            maxPoints: points,
            fromSeconds: span.value?.from ?? 0,
            toSeconds: span.value?.to ?? 0,
          },
          { signal },
        ),
      ),
    enabled: computed(() => key.value.attempt > 0),
    refetchInterval: computed(() => (open.value && !span.value ? 3000 : false)),
    staleTime: 60_000,
    shallow: true,
    structuralSharing: false,
  })
}

/** The run of an attempt, with all its trials, for stepping from one to the next. */
export function useRunPoints(run: Ref<string>) {
  return useQuery({
    queryKey: computed(() => ['summary', [run.value], '']),
    queryFn: async ({ signal }) => markRaw(await results.summarize({ ids: [run.value], points: true }, { signal })),
    staleTime: 10_000,
    shallow: true,
    structuralSharing: false,
  })
}
