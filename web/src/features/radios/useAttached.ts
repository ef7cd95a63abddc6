// The nodes that have a radio now.
import { useQuery } from '@tanstack/vue-query'
import { computed, toValue, type MaybeRefOrGetter } from 'vue'
import { operator } from '@/lib/api'
import { useNodes } from '@/features/fleet/useFleet'
import { useLab } from '@/features/lab/useLab'
import { attachedTo, radioInUse } from './attached'

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
    /** What a page shows where nobody chose: the first answer stays, so that a page does not change under its reader. */
    inUse: computed<string | undefined>(
      (before) => before ?? radioInUse(nodes.value, runs.data.value?.runs ?? [], inLab.value),
    ),
    topology: computed<string | undefined>((before) => {
      if (before !== undefined) return before
      if (lab.data.value?.up) return lab.data.value.topology
      return runs.data.value?.runs.find((r) => r.started)?.topology
    }),
    attached: computed(() => attachedTo(toValue(radio), nodes.value, runs.data.value?.runs ?? [], inLab.value)),
  }
}
