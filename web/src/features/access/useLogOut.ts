// Logging out, as buttons do it.
import { useMutation } from '@tanstack/vue-query'
import { toast } from '@/composables/toasts'
import { explain } from '@/lib/api'
import { logOut } from './session'

export function useLogOut() {
  return useMutation({ mutationFn: logOut, onError: (e) => toast.error(explain(e)) })
}
