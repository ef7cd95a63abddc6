// The nodes, their links and preflights, as the orchestrator answers.
import { useMutation, useQuery, useQueryClient } from '@tanstack/vue-query'
import { computed, ref, watch } from 'vue'
import { Code, ConnectError } from '@connectrpc/connect'
import { fleet, library, operator } from '@/lib/api'

export function useNodes() {
  const query = useQuery({
    queryKey: ['nodes'],
    queryFn: ({ signal }) => operator.listNodes({}, { signal }),
    refetchInterval: 3000,
  })
  // Those of the virtual-time lab are no machines that anybody could look after.
  const nodes = computed(() => query.data.value?.nodes.filter((n) => !n.virtual) ?? [])
  const bounds = computed(() => query.data.value?.bounds)
  return { query, nodes, bounds, connected: computed(() => nodes.value.filter((n) => n.connected)) }
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
    mutationFn: async (scope: { nodes: string[]; topology: string; radio: string; plan: string }) => {
      const { plan, ...of } = scope
      if (!plan) return fleet.startPreflight(of)
      const { text } = await library.getPlan({ name: plan })
      const res = await fleet.startPreflight({ ...of, planFile: `${plan}.yaml`, planText: text })
      const p = res.problems[0]
      if (p) {
        const more = res.problems.length > 1 ? ` (and ${res.problems.length - 1} more)` : ''
        throw new ConnectError(`${p.file}:${p.line}:${p.column}: ${p.message}${more}`, Code.InvalidArgument)
      }
      return res
    },
    onSuccess: async (r) => {
      id.value = r.id
      await client.invalidateQueries({ queryKey: ['preflight'] })
      await client.invalidateQueries({ queryKey: ['links'] })
    },
  })
  const running = computed(() => !!query.data.value?.id && !query.data.value.ended)
  // What it has measured stands beside it as soon as it says that it has.
  watch(running, (now, before) => {
    if (before && !now) void client.invalidateQueries({ queryKey: ['links'] })
  })
  return { query, start, running }
}
