// Short messages that any page or composable shows, and that leave by themselves.
import { ref } from 'vue'

export interface Toast {
  id: number
  kind: 'success' | 'warning' | 'error'
  text: string
}
/** How long a message stays. What went wrong takes longer to read. */
const stayMs = { success: 6_000, warning: 10_000, error: 10_000 }

const toasts = ref<Toast[]>([])
const timers = new Map<number, ReturnType<typeof setTimeout>>()
let last = 0

function close(id: number) {
  hold(id)
  toasts.value = toasts.value.filter((t) => t.id !== id)
}
/** Keeps a message until it is released. */
function hold(id: number) {
  clearTimeout(timers.get(id))
  timers.delete(id)
}
function release(id: number) {
  const toast = toasts.value.find((t) => t.id === id)
  if (!toast) return
  hold(id)
  timers.set(
    id,
    setTimeout(() => close(id), stayMs[toast.kind]),
  )
}
function add(kind: Toast['kind'], text: string) {
  const id = ++last
  toasts.value = [...toasts.value, { id, kind, text }]
  release(id)
}

export const toast = {
  success: (text: string) => add('success', text),
  warning: (text: string) => add('warning', text),
  error: (text: string) => add('error', text),
}
export function useToasts() {
  return { toasts, close, hold, release }
}
