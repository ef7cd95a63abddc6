// The orchestrator's word on a plan while it is being written: its problems at
// once, its order and time when there are none.
import { watchDebounced } from '@vueuse/core'
import { computed, onScopeDispose, ref, shallowRef, type Ref } from 'vue'
import type { ExplainPlanResponse, Problem } from '@/gen/linktrial/v1/operator_pb'
import { isCancelled, operator } from '@/lib/api'
import { utf8 } from '@/lib/utf8'

/** How long one must have stopped typing. */
const debounceMs = 350

export function usePlanCheck(text: Ref<string>, file: Ref<string>) {
  const problems = shallowRef<Problem[]>([])
  const summary = ref('')
  const error = shallowRef<unknown>()
  const explained = shallowRef<ExplainPlanResponse>()
  const checked = ref<string>() // the text that problems are of
  let running: AbortController | undefined
  let last = '' // what the orchestrator was asked last

  async function check() {
    running?.abort()
    const mine = (running = new AbortController())
    const asked = text.value
    last = question()
    try {
      const plan = { file: `${file.value}.yaml`, text: utf8(asked) }
      const answer = await operator.checkPlan(plan, { signal: mine.signal })
      problems.value = answer.problems
      summary.value = answer.summary
      checked.value = asked
      error.value = undefined
      if (answer.problems.length) explained.value = undefined
      else explained.value = await operator.explainPlan(plan, { signal: mine.signal })
    } catch (e) {
      if (!mine.signal.aborted && !isCancelled(e)) error.value = e
    }
  }
  const question = () => `${file.value}\n${text.value}`
  // A plan that has just been loaded was asked about at once.
  watchDebounced(text, () => void (question() !== last && check()), { debounce: debounceMs, immediate: false })
  onScopeDispose(() => running?.abort())

  return {
    check,
    problems,
    summary,
    error,
    explained,
    /** What is shown is of another text than the one that stands there now. */
    pending: computed(() => checked.value !== text.value),
  }
}
