// The emulated lab of the orchestrator's machine.
import { useMutation, useQuery, useQueryClient } from '@tanstack/vue-query'
import { lab } from '@/lib/api'

export function useLab() {
  const client = useQueryClient()
  const again = () =>
    Promise.all([client.invalidateQueries({ queryKey: ['lab'] }), client.invalidateQueries({ queryKey: ['nodes'] })])
  return {
    query: useQuery({
      queryKey: ['lab'],
      queryFn: ({ signal }) => lab.labStatus({}, { signal }),
      refetchInterval: 1500,
    }),
    up: useMutation({ mutationFn: (w: { radio: string; topology: string }) => lab.labUp(w), onSettled: again }),
    down: useMutation({ mutationFn: () => lab.labDown({}), onSettled: again }),
    link: useMutation({ mutationFn: (w: { node: string; up: boolean }) => lab.setControlLink(w), onSettled: again }),
  }
}
