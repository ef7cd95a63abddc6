// The outcomes of listed campaigns, a question for each of them.
import { useQueries } from '@tanstack/vue-query'
import { computed, type Ref } from 'vue'
import type { Campaign } from '@/gen/linktrial/v1/result_pb'
import { results } from '@/lib/api'
import { outcomeOf, type Outcome } from './outcome'

/** The values of larger campaigns take the orchestrator seconds: nobody has asked for them here. */
const mostTrials = 5_000

export function useOutcomes(campaigns: Ref<Campaign[]>) {
  const asked = computed(() => campaigns.value.filter((c) => c.trials <= mostTrials && c.trialsEnded > 0))
  const queries = useQueries({
    queries: computed(() =>
      asked.value.map((c) => ({
        queryKey: ['outcome', c.id, c.ended ? c.ended.seconds.toString() : ''],
        queryFn: async ({ signal }: { signal: AbortSignal }) =>
          outcomeOf(await results.summarize({ ids: [c.id] }, { signal })),
        // Marks can change a campaign that has ended, too.
        staleTime: c.ended ? 60_000 : 0,
        refetchInterval: c.ended ? (false as const) : 15_000,
      })),
    ),
  })
  return computed(() => {
    const out = new Map<string, Outcome>()
    asked.value.forEach((c, i) => {
      const known = queries.value[i]?.data
      if (known) out.set(c.id, known)
    })
    return out
  })
}
