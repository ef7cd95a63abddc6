// Saved plans and schedules, as the orchestrator answers.
import { useMutation, useQuery, useQueryClient } from '@tanstack/vue-query'
import { library } from '@/lib/api'
import { utf8 } from '@/lib/utf8'

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
