// Protocol drivers: manifests, their state on each node, and the conformance suite.
import { useQuery, useQueryClient } from '@tanstack/vue-query'
import { computed, onScopeDispose, ref } from 'vue'
import type { ConformanceCheck, ConformanceResult } from '@/gen/linktrial/v1/lab_pb'
import { catalog, explain, isCancelled } from '@/lib/api'

export interface Manifest {
  name: string
  title: string
  summary: string
  version: string
  command: string[]
  options?: {
    name: string
    type: string
    default?: unknown
    help: string
    choices?: string[]
    from_probe?: boolean
    min?: number
    max?: number
  }[]
  features?: string[]
  capabilities?: string[]
  kernel?: string
  network: string
}

export function useProtocols() {
  const query = useQuery({ queryKey: ['protocols'], queryFn: ({ signal }) => catalog.listProtocols({}, { signal }) })
  const protocols = computed(
    () => query.data.value?.protocols.map((p) => ({ ...p, manifest: JSON.parse(p.manifestJson) as Manifest })) ?? [],
  )
  return { query, protocols }
}

/** Runs the conformance suite of one driver and collects its checks as they end. */
export function useConformance() {
  const client = useQueryClient()
  const running = ref('')
  const checks = ref<ConformanceCheck[]>([])
  const result = ref<ConformanceResult>()
  const error = ref('')
  const total = ref(0)
  const began = ref(0)
  let stop: AbortController | undefined

  async function run(name: string, quick: boolean) {
    stop?.abort()
    const mine = (stop = new AbortController())
    running.value = name
    checks.value = []
    result.value = undefined
    error.value = ''
    total.value = 0
    began.value = Date.now()
    try {
      for await (const r of catalog.checkProtocol({ name, quick }, { signal: mine.signal })) {
        total.value = r.total
        if (r.event.case === 'check') checks.value.push(r.event.value)
        if (r.event.case === 'result') result.value = r.event.value
      }
    } catch (e) {
      if (!isCancelled(e)) error.value = explain(e)
    } finally {
      if (stop === mine) running.value = ''
      await client.invalidateQueries({ queryKey: ['protocols'] })
    }
  }
  onScopeDispose(() => stop?.abort())
  return { run, cancel: () => stop?.abort(), running, checks, total, began, result, error }
}
