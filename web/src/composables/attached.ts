// Which nodes have a radio now.
import { computed, toValue, type MaybeRefOrGetter } from 'vue'
import type { Node } from '@/gen/linktrial/v1/operator_pb'
import { useNodes } from './fleet'
import { useLab } from './lab'

/** Connected nodes with a real radio of the profile, and those of the lab while it emulates it. */
export function attachedTo(radio: string, nodes: Node[], emulated: string): Node[] {
  return nodes.filter((n) => n.connected && !n.virtual && (n.emulated ? radio === emulated : n.radio === radio))
}

export function useAttached(radio: MaybeRefOrGetter<string>) {
  const { query, nodes } = useNodes()
  const { query: lab } = useLab()
  const emulated = computed(() => (lab.data.value?.up ? lab.data.value.radio : ''))
  return { query, attached: computed(() => attachedTo(toValue(radio), nodes.value, emulated.value)) }
}
