// Accepted drivers and those that wait for approval, as the orchestrator answers.
import { useQuery } from '@tanstack/vue-query'
import { computed } from 'vue'
import { trust } from '@/lib/api'
import { type AcceptedOnNodes, driverKey, byDigest } from './approvals'

export function useApprovals() {
  const query = useQuery({
    queryKey: ['approvals'],
    queryFn: ({ signal }) => trust.listApprovals({}, { signal }),
    refetchInterval: 5_000,
  })
  const have = computed(() => byDigest(query.data.value?.onNodes ?? []))
  const accepted = computed((): AcceptedOnNodes[] =>
    (query.data.value?.accepted ?? []).map((a) => ({
      versions: [],
      nodes: [],
      ...have.value.find((d) => driverKey(d) === driverKey(a)),
      ...a,
    })),
  )
  const waiting = computed(() => {
    const good = new Set(accepted.value.map(driverKey))
    return have.value.filter((d) => !good.has(driverKey(d)))
  })
  return { query, accepted, waiting }
}
