// The way out, as buttons have it.
import { useMutation } from '@tanstack/vue-query'
import { useMessage } from 'naive-ui'
import { explain } from '@/lib/api'
import { logOut } from './access'

export function useLogOut() {
  const message = useMessage()
  return useMutation({ mutationFn: logOut, onError: (e) => message.error(explain(e)) })
}
