// The runs that have not ended, the newest first.
import { useQuery } from '@tanstack/vue-query'
import type { MaybeRef } from 'vue'
import { operator } from '@/lib/api'

/** More than a plan may have. */
const most = 2000

/** While needed is false, nothing is asked. */
export function useOpenRuns(needed: MaybeRef<boolean> = true) {
  return useQuery({
    enabled: needed,
    queryKey: ['runs', 'open'],
    queryFn: ({ signal }) => operator.listRuns({ open: true, limit: most }, { signal }),
    refetchInterval: 2000,
  })
}
