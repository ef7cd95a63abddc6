// One plan being edited: its saved text, its current text, and how it is saved.
import { useQuery, useQueryClient } from '@tanstack/vue-query'
import { Code, ConnectError } from '@connectrpc/connect'
import { useEventListener } from '@vueuse/core'
import { computed, ref, shallowRef, watch, type Ref } from 'vue'
import { onBeforeRouteLeave, onBeforeRouteUpdate } from 'vue-router'
import { explain, library } from '@/lib/api'
import type { SavedPlan } from '@/gen/linktrial/v1/library_pb'
import { fromUtf8, utf8 } from '@/lib/utf8'

const leaving = 'The plan has changes that are not saved. Leave it anyway?'

export function usePlanDocument(name: Ref<string>) {
  const queries = useQueryClient()
  const text = ref('')
  const saved = ref('')
  const plan = shallowRef<SavedPlan>()
  const conflict = shallowRef<{ theirs: string; plan: SavedPlan }>()
  const saving = ref(false)
  const error = ref('')

  const query = useQuery({
    queryKey: ['plan', name],
    queryFn: ({ signal }) => library.getPlan({ name: name.value }, { signal }),
    staleTime: 0,
  })
  const dirty = computed(() => plan.value !== undefined && text.value !== saved.value)

  function take(theirs: string, of: SavedPlan) {
    text.value = saved.value = theirs
    plan.value = of
    conflict.value = undefined
  }
  // What comes while one writes does not overwrite it: the save tells.
  watch(
    query.data,
    (d) => {
      if (d?.plan && d.plan.name === name.value && (plan.value?.name !== name.value || !dirty.value))
        take(fromUtf8(d.text), d.plan)
    },
    { immediate: true },
  )

  /** True where it is saved; otherwise error or conflict tells why not. */
  async function save(over = false): Promise<boolean> {
    const mine = text.value
    saving.value = true
    error.value = ''
    try {
      const revision = over && conflict.value ? conflict.value.plan.revision : (plan.value?.revision ?? 0)
      const r = await library.savePlan({ name: name.value, text: utf8(mine), revision })
      saved.value = mine
      plan.value = r.plan
      conflict.value = undefined
      void queries.invalidateQueries({ queryKey: ['plans'] })
      queries.setQueryData(
        ['plan', name.value],
        (old: object | undefined) => old && { ...old, plan: r.plan, text: utf8(mine) },
      )
      return true
    } catch (e) {
      if (!(await conflicts(e))) error.value = explain(e)
      return false
    } finally {
      saving.value = false
    }
  }

  async function conflicts(e: unknown): Promise<boolean> {
    const code = ConnectError.from(e).code
    if (![Code.Aborted, Code.FailedPrecondition, Code.AlreadyExists].includes(code)) return false
    try {
      const now = await library.getPlan({ name: name.value })
      if (!now.plan || now.plan.shipped || now.plan.revision === plan.value?.revision) return false
      conflict.value = { theirs: fromUtf8(now.text), plan: now.plan }
      return true
    } catch {
      return false
    }
  }

  useEventListener(window, 'beforeunload', (e) => {
    if (dirty.value) e.preventDefault()
  })
  onBeforeRouteLeave(() => !dirty.value || window.confirm(leaving))
  onBeforeRouteUpdate((to, from) => to.path === from.path || !dirty.value || window.confirm(leaving))

  return {
    query,
    text,
    plan,
    dirty,
    saving,
    error,
    conflict,
    save,
    takeTheirs: () => conflict.value && take(conflict.value.theirs, conflict.value.plan),
    /** The text was saved elsewhere: the page may be left without a question. */
    discard: () => (saved.value = text.value),
  }
}
