// How every form is sent: busy while it is under way, and why it was refused.
import { ref } from 'vue'
import { explain } from '@/lib/api'

/** Thrown by a form's own checks; its message is shown as it is. */
export class FormError extends Error {}

export function useSubmit(send: () => unknown) {
  const busy = ref(false)
  const error = ref('')

  /** Reports whether send succeeded. Does nothing while an earlier call is under way. */
  async function submit(): Promise<boolean> {
    if (busy.value) return false
    busy.value = true
    error.value = ''
    try {
      await send()
      return true
    } catch (e) {
      error.value = e instanceof FormError ? e.message : explain(e)
      return false
    } finally {
      busy.value = false
    }
  }
  return { busy, error, submit, reset: () => (error.value = '') }
}
