// Protocols and nodes, as the form of a plan needs them.
import { useQuery } from '@tanstack/vue-query'
import { computed } from 'vue'
import { catalog, operator } from '@/lib/api'
import { type Manifest } from './drivers'

/** The protocols that the orchestrator knows, and their manifests. */
export function useManifests() {
  const protocols = useQuery({
    queryKey: ['protocols'],
    queryFn: ({ signal }) => catalog.listProtocols({}, { signal }),
    staleTime: 30_000,
  })
  const manifests = computed(() =>
    (protocols.data.value?.protocols ?? []).map((p) => JSON.parse(p.manifestJson) as Manifest),
  )
  return { protocols, manifests }
}

export function usePlanDrivers() {
  const { protocols, manifests } = useManifests()
  const nodes = useQuery({
    queryKey: ['nodes'],
    queryFn: ({ signal }) => operator.listNodes({}, { signal }),
    refetchInterval: 5_000,
  })
  return {
    protocols,
    nodes,
    manifests,
    connected: computed(() => (nodes.data.value?.nodes ?? []).filter((n) => n.connected)),
    here: computed(() => new Map((protocols.data.value?.protocols ?? []).map((p) => [p.name, p.here?.choices ?? {}]))),
  }
}
