// Radio profiles and topologies as the orchestrator has them.
import { useQuery } from '@tanstack/vue-query'
import { computed } from 'vue'
import { operator } from '@/lib/api'
import type { Profile } from '@/lib/profile'
import type { Topology } from '@/lib/topology'

export function useCatalog() {
  const query = useQuery({
    queryKey: ['profiles'],
    queryFn: ({ signal }) => operator.listProfiles({}, { signal }),
    staleTime: 30_000,
  })
  return {
    query,
    radios: computed(() => query.data.value?.radios.map((j) => JSON.parse(j) as Profile) ?? []),
    sources: computed(() => query.data.value?.sources ?? []),
    topologies: computed(() => query.data.value?.topologies.map((j) => JSON.parse(j) as Topology) ?? []),
    savedRadios: computed(() => new Set(query.data.value?.savedRadios ?? [])),
    shipped: computed(() => new Set(query.data.value?.shippedTopologies ?? [])),
  }
}
