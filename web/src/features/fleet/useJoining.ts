// The code that is open, as the orchestrator answers while somebody looks at it.
import { useQuery } from '@tanstack/vue-query'
import { computed, ref, type Ref } from 'vue'
import type { OpenJoiningResponse } from '@/gen/linktrial/v1/join_pb'
import { date } from '@/lib/format'
import { joins } from '@/lib/api'

export function useJoining(shown: Ref<boolean>) {
  /** The newest code that was opened here: the orchestrator shows none again. */
  const made = ref<OpenJoiningResponse>()
  const query = useQuery({
    queryKey: ['joining'],
    queryFn: ({ signal }) => joins.getJoining({}, { signal }),
    enabled: computed(() => shown.value && !!made.value),
    refetchInterval: 2_000,
  })
  async function open() {
    const opened = await joins.openJoining({})
    await query.refetch() // first: the state of the code before is not this one's
    made.value = opened
  }
  async function close() {
    await joins.closeJoining({})
    await query.refetch()
  }
  /** Somebody else has opened a newer code: this one is closed, and the state is not its own. */
  const replaced = computed(() => {
    const newest = date(query.data.value?.expires)?.getTime()
    return !!made.value && newest !== undefined && newest !== date(made.value.expires)?.getTime()
  })
  return { made, query, open, close, replaced }
}
