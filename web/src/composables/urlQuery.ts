// Parts of the view that are kept in the page's address.
import { computed, type WritableComputedRef } from 'vue'
import { useRoute, useRouter } from 'vue-router'

/** One parameter of the address as text; the fallback's value is left out of the address only where it is empty. */
export function useUrlQuery(key: string, fallback = ''): WritableComputedRef<string> {
  const route = useRoute()
  const router = useRouter()
  return computed({
    get: () => String(route.query[key] ?? fallback),
    set: (value: string) => void router.replace({ query: { ...route.query, [key]: value || undefined } }),
  })
}
