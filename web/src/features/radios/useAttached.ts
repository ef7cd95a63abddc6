// The nodes that have a radio now.
import { useQuery } from '@tanstack/vue-query'
import { computed, toValue, type MaybeRefOrGetter } from 'vue'
import { operator } from '@/lib/api'
import { useNodes } from '@/features/fleet/useFleet'
import { useLab } from '@/features/lab/useLab'
import { attachedTo } from './attached'

export function useAttached(radio: MaybeRefOrGetter<string>) {
  const { query, nodes } = useNodes()
  const { query: lab } = useLab()
  const runs = useQuery({
    queryKey: ['runs', 'newest'],
    queryFn: ({ signal }) => operator.listRuns({ limit: 200 }, { signal }),
    refetchInterval: 5000,
  })
  const inLab = computed(() => (lab.data.value?.up ? lab.data.value.radio : ''))
  return {
    query,
    attached: computed(() => attachedTo(toValue(radio), nodes.value, runs.data.value?.runs ?? [], inLab.value)),
  }
}
