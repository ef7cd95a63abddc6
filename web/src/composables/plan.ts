// Plans kept at the orchestrator, and their schedules.
import { useMutation, useQuery, useQueryClient } from '@tanstack/vue-query'
import { library } from '@/lib/api'

export const utf8 = (text: string) => new TextEncoder().encode(text)
export const fromUtf8 = (bytes: Uint8Array) => new TextDecoder().decode(bytes)

export function usePlans() {
  const queries = useQueryClient()
  const refetch = () =>
    Promise.all([
      queries.invalidateQueries({ queryKey: ['plans'] }),
      queries.invalidateQueries({ queryKey: ['schedules'] }),
    ])
  return {
    plans: useQuery({ queryKey: ['plans'], queryFn: ({ signal }) => library.listPlans({}, { signal }) }),
    schedules: useQuery({
      queryKey: ['schedules'],
      queryFn: ({ signal }) => library.listSchedules({}, { signal }),
      refetchInterval: 5_000,
    }),
    create: useMutation({
      mutationFn: (p: { name: string; text: string }) =>
        library.savePlan({ name: p.name, text: utf8(p.text), revision: 0 }),
      onSuccess: refetch,
    }),
    remove: useMutation({ mutationFn: (name: string) => library.deletePlan({ name }), onSuccess: refetch }),
    cancel: useMutation({ mutationFn: (id: string) => library.cancelSchedule({ id }), onSuccess: refetch }),
    refetch,
  }
}

/** What may stand as a plan's file name. */
export function nameProblem(name: string, taken: string[] = []): string {
  if (!name) return 'A plan needs a name.'
  if (!/^[a-z0-9][a-z0-9-]{0,47}$/.test(name)) return 'Lower-case letters, digits and hyphens, at most 48.'
  return taken.includes(name) ? 'There is a plan of this name.' : ''
}

/** A moment as <input type="datetime-local"> has it, in the viewer's zone. */
export function localInput(at: Date): string {
  const pad = (n: number) => String(n).padStart(2, '0')
  return `${at.getFullYear()}-${pad(at.getMonth() + 1)}-${pad(at.getDate())}T${pad(at.getHours())}:${pad(at.getMinutes())}`
}
