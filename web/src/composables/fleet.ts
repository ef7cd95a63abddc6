// The nodes, what preflight found of them, and who hears whom.
import { useMutation, useQuery, useQueryClient } from '@tanstack/vue-query'
import { computed, ref } from 'vue'
import { CheckState, type Check } from '@/gen/linktrial/v1/fleet_pb'
import { fleet, operator } from '@/lib/api'

export function useNodes() {
  const query = useQuery({
    queryKey: ['nodes'],
    queryFn: ({ signal }) => operator.listNodes({}, { signal }),
    refetchInterval: 3000,
  })
  const nodes = computed(() => query.data.value?.nodes ?? [])
  return { query, nodes, connected: computed(() => nodes.value.filter((n) => n.connected)) }
}

export function useLinks() {
  return useQuery({ queryKey: ['links'], queryFn: ({ signal }) => fleet.links({}, { signal }), refetchInterval: 5000 })
}

export function usePreflight() {
  const client = useQueryClient()
  const id = ref('')
  const query = useQuery({
    queryKey: ['preflight', id],
    queryFn: ({ signal }) => fleet.getPreflight({ id: id.value }, { signal }),
    // While one goes on its answers come one after the other.
    refetchInterval: (q) => (q.state.data && q.state.data.id && !q.state.data.ended ? 700 : false),
  })
  const start = useMutation({
    mutationFn: (scope: { nodes: string[]; topology: string; radio: string }) => fleet.startPreflight(scope),
    onSuccess: async (r) => {
      id.value = r.id
      await client.invalidateQueries({ queryKey: ['preflight'] })
      await client.invalidateQueries({ queryKey: ['links'] })
    },
  })
  const running = computed(() => !!query.data.value?.id && !query.data.value.ended)
  return { query, start, running }
}

/** What is worst of a list of checks: what one looks at first. */
export function worst(checks: Check[]): CheckState {
  const order = [CheckState.FAILED, CheckState.WARNING, CheckState.UNKNOWN, CheckState.OK, CheckState.UNSPECIFIED]
  return order.find((s) => checks.some((c) => c.state === s)) ?? CheckState.UNSPECIFIED
}

/** Red first, and within a state by node and kind. */
export function bySeverity(checks: Check[]): Check[] {
  const rank: Record<number, number> = {
    [CheckState.FAILED]: 0,
    [CheckState.WARNING]: 1,
    [CheckState.UNKNOWN]: 2,
    [CheckState.UNSPECIFIED]: 3,
    [CheckState.OK]: 4,
  }
  return [...checks].sort(
    (a, b) =>
      rank[a.state]! - rank[b.state]! ||
      a.node.localeCompare(b.node) ||
      a.kind.localeCompare(b.kind) ||
      a.peer.localeCompare(b.peer),
  )
}
