// The runs that have not ended, the newest first.
import { useQuery } from '@tanstack/vue-query'
import { operator } from '@/lib/api'

/** More than a plan may have. */
const most = 2000

export function useOpenRuns() {
  return useQuery({
    queryKey: ['runs', 'open'],
    queryFn: ({ signal }) => operator.listRuns({ open: true, limit: most }, { signal }),
    refetchInterval: 2000,
  })
}
