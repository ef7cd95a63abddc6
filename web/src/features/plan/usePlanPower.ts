// The orchestrator's word on which differences a plan can find, while the plan is written.
import { keepPreviousData, useQuery } from '@tanstack/vue-query'
import { refDebounced } from '@vueuse/core'
import { computed, type Ref } from 'vue'
import { operator } from '@/lib/api'
import { utf8 } from '@/lib/utf8'
import { shareOf, type PowerAsked } from './power'

/** How long one must have stopped typing. */
const debounceMs = 350

/** ready: the plan has no problems as it is written now. */
export function usePlanPower(text: Ref<string>, file: Ref<string>, asked: Ref<PowerAsked>, ready: Ref<boolean>) {
  const settled = refDebounced(
    computed(() => ({ text: text.value, effect: shareOf(asked.value.effect), spread: shareOf(asked.value.spread) })),
    debounceMs,
  )
  return useQuery({
    queryKey: ['plan power', file, settled],
    queryFn: ({ signal }) =>
      operator.explainPower(
        {
          file: `${file.value}.yaml`,
          text: utf8(settled.value.text),
          effect: settled.value.effect,
          assumedSpread: settled.value.spread,
        },
        { signal },
      ),
    enabled: computed(() => ready.value && settled.value.effect !== undefined && settled.value.spread !== undefined),
    placeholderData: keepPreviousData,
    gcTime: 0,
  })
}
