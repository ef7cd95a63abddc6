// Which nodes have a radio now.
import { useQuery } from '@tanstack/vue-query'
import { computed, toValue, type MaybeRefOrGetter } from 'vue'
import type { Node, Run } from '@/gen/linktrial/v1/operator_pb'
import { operator } from '@/lib/api'
import { useNodes } from './fleet'
import { useLab } from './lab'

/** The radio that an emulated node has: of the newest run that began on it, else of its lab. */
function emulatedRadio(node: string, runs: Run[], lab: string): string {
  return runs.find((r) => r.started && r.place === 'emulated, real time' && r.nodes.includes(node))?.radio ?? lab
}

/** Connected nodes with a radio of the profile, real or emulated; runs: newest first. */
export function attachedTo(radio: string, nodes: Node[], runs: Run[], lab: string): Node[] {
  return nodes.filter(
    (n) => n.connected && !n.virtual && (n.emulated ? emulatedRadio(n.name, runs, lab) : n.radio) === radio,
  )
}

export function useAttached(radio: MaybeRefOrGetter<string>) {
  const { query, nodes } = useNodes()
  const { query: lab } = useLab()
  const runs = useQuery({
    queryKey: ['runs', 'newest'],
    queryFn: ({ signal }) => operator.listRuns({ limit: 200 }, { signal }),
    refetchInterval: 5000,
  })
  const inLab = computed(() => (lab.data.value?.up ? lab.data.value.radio : ''))
  return {
    query,
    attached: computed(() => attachedTo(toValue(radio), nodes.value, runs.data.value?.runs ?? [], inLab.value)),
  }
}
