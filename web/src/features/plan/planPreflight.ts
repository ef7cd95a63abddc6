// A preflight that carries a small transfer of each treatment of a plan, from where the plan is started.
import { onScopeDispose, ref } from 'vue'
import { FormError, useSubmit } from '@/composables/submit'
import { CheckState, type GetPreflightResponse } from '@/gen/linktrial/v1/fleet_pb'
import { fleet } from '@/lib/api'
import { wholeSeconds } from '@/lib/format'
import { utf8 } from '@/lib/utf8'

/** Between two looks at one that is under way, in ms. */
const pause = 700

/** What a preflight that has ended says of a start; empty: nothing speaks against it. */
export function verdict(p: Pick<GetPreflightResponse, 'checks'>): string {
  const failed = p.checks.filter((c) => c.state === CheckState.FAILED)
  if (!failed.length) return ''
  const c = failed[0]!
  const more = failed.length > 1 ? ` The page Fleet shows this and ${failed.length - 1} more.` : ''
  const remedy = c.remedy ? ` What to do: ${c.remedy}.` : ''
  return `${c.node}${c.peer ? ` → ${c.peer}` : ''}, ${c.kind}: ${c.found}.${remedy}${more}`
}

/** Makes it, and then calls done where nothing failed. */
export function usePlanPreflight(done: () => unknown) {
  const left = ref('')
  const plan = ref({ name: '', text: '' })
  let ended = false
  onScopeDispose(() => (ended = true))
  const sending = useSubmit(async () => {
    left.value = ''
    const res = await fleet.startPreflight({ planFile: `${plan.value.name}.yaml`, planText: utf8(plan.value.text) })
    if (res.problems.length) throw new FormError(res.problems.map((p) => p.message).join('\n'))
    for (;;) {
      const p = await fleet.getPreflight({ id: res.id })
      if (ended) return
      left.value = p.ended ? '' : `${p.step}, about ${wholeSeconds(p.leftSeconds)} left`
      const wrong = p.ended ? verdict(p) : ''
      if (wrong) throw new FormError(wrong)
      if (p.ended) break
      await new Promise((r) => setTimeout(r, pause))
    }
    await done()
  })
  const make = (name: string, text: string) => {
    plan.value = { name, text }
    return sending.submit()
  }
  return { busy: sending.busy, error: sending.error, left, make }
}
