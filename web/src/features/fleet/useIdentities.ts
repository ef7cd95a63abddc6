// Nodes' identities and the orchestrator's authority, as it answers.
import { useQuery } from '@tanstack/vue-query'
import { computed } from 'vue'
import { GetAuthorityResponse_Mode as Mode } from '@/gen/linktrial/v1/enrol_pb'
import { nodes } from '@/lib/api'

/** How nodes connect to this orchestrator; undefined until it has answered. */
export function useAuthority() {
  const authority = useQuery({
    queryKey: ['authority'],
    queryFn: ({ signal }) => nodes.getAuthority({}, { signal }),
    staleTime: 60_000,
  })
  return { authority, mode: computed(() => authority.data.value?.mode) }
}

export function useIdentities() {
  const { authority, mode } = useAuthority()
  const required = computed(() => mode.value === Mode.TLS)
  const query = useQuery({
    queryKey: ['identities'],
    queryFn: ({ signal }) => nodes.listNodeIdentities({}, { signal }),
    enabled: required,
    refetchInterval: 5_000,
  })
  return { authority, mode, required, query, identities: computed(() => query.data.value?.nodes ?? []) }
}
