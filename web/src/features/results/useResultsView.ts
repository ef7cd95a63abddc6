// The results page's view, kept in its address.
import { computed } from 'vue'
import { useRoute, useRouter } from 'vue-router'
import { type View, readView, writeView } from './view'

export function useResultsView() {
  const route = useRoute()
  const router = useRouter()
  const view = computed(() => readView(route.query))
  return {
    view,
    /** Where a change of the view leads, for links. */
    to: (patch: Partial<View>) => ({ path: '/results', query: writeView({ ...view.value, ...patch }) }),
    set: (patch: Partial<View>) => router.replace({ path: '/results', query: writeView({ ...view.value, ...patch }) }),
  }
}
