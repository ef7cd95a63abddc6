// Saved plans and schedules, as the orchestrator answers.
import { useMutation, useQuery, useQueryClient } from '@tanstack/vue-query'
import type { ChangeRecurrenceRequest_Change } from '@/gen/linktrial/v1/library_pb'
import { library } from '@/lib/api'
import { utf8 } from '@/lib/utf8'

/** Asks for plans and schedules again, where they are shown. */
export function useRefetch() {
  const queries = useQueryClient()
  return () =>
    Promise.all([
      queries.invalidateQueries({ queryKey: ['plans'] }),
      queries.invalidateQueries({ queryKey: ['schedules'] }),
    ])
}

export function usePlans() {
  const refetch = useRefetch()
  return {
    plans: useQuery({ queryKey: ['plans'], queryFn: ({ signal }) => library.listPlans({}, { signal }) }),
    create: useMutation({
      mutationFn: (p: { name: string; text: string }) =>
        library.savePlan({ name: p.name, text: utf8(p.text), revision: 0 }),
      onSuccess: refetch,
    }),
    remove: useMutation({ mutationFn: (name: string) => library.deletePlan({ name }), onSuccess: refetch }),
  }
}

export function useSchedules() {
  const refetch = useRefetch()
  return {
    schedules: useQuery({
      queryKey: ['schedules'],
      queryFn: ({ signal }) => library.listSchedules({}, { signal }),
      refetchInterval: 5_000,
    }),
    cancel: useMutation({ mutationFn: (id: string) => library.cancelSchedule({ id }), onSuccess: refetch }),
    changeRule: useMutation({
      mutationFn: (c: { id: string; change: ChangeRecurrenceRequest_Change }) => library.changeRecurrence(c),
      onSuccess: refetch,
    }),
  }
}
