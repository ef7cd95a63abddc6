// The parameters of one radio that a plan can set or vary.
import { useQuery } from '@tanstack/vue-query'
import { computed, type Ref } from 'vue'
import { catalog } from '@/lib/api'
import { fromUtf8 } from '@/lib/utf8'
import { parametersOf } from './parameters'

export function useParameters(radio: Ref<string | undefined>) {
  const query = useQuery({
    queryKey: ['source', 'radio', radio],
    queryFn: ({ signal }) => catalog.getSource({ kind: 'radio', name: radio.value! }, { signal }),
    enabled: computed(() => !!radio.value),
    staleTime: 60_000,
  })
  return computed(() => (query.data.value ? parametersOf(fromUtf8(query.data.value.text)) : []))
}
