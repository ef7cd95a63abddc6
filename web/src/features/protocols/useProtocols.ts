// Protocol drivers: manifests, their state on each node, and the conformance suite.
import { useQuery, useQueryClient } from '@tanstack/vue-query'
import { computed, onScopeDispose, ref } from 'vue'
import type { Manifest as DriverManifest } from '@/features/plan/drivers'
import type { ConformanceCheck, ConformanceResult } from '@/gen/linktrial/v1/lab_pb'
import { catalog, explain, isCancelled } from '@/lib/api'
import { timeLeft } from './conformance'

export interface Manifest extends DriverManifest {
  command: string[]
  features?: string[]
  capabilities?: string[]
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
  const quick = ref(false)
  const checks = ref<ConformanceCheck[]>([])
  /** How many checks the suite has; 0 until the first has ended. */
  const total = ref(0)
  const result = ref<ConformanceResult>()
  const error = ref('')
  /** When it ends, by the last result of the whole suite; undefined while nothing is
      known, and of a quick suite, whose times are not stored. */
  const finish = ref<Date>()
  let stop: AbortController | undefined

  async function run(name: string, isQuick: boolean, last?: ConformanceResult) {
    stop?.abort()
    const mine = (stop = new AbortController())
    running.value = name
    quick.value = isQuick
    checks.value = []
    total.value = 0
    result.value = undefined
    error.value = ''
    finish.value = undefined
    try {
      for await (const r of catalog.checkProtocol({ name, quick: isQuick }, { signal: mine.signal })) {
        total.value = r.total
        if (r.event.case === 'result') result.value = r.event.value
        if (r.event.case !== 'check') continue
        checks.value.push(r.event.value)
        const left = isQuick ? undefined : timeLeft(last, checks.value, r.total)
        finish.value = left === undefined ? undefined : new Date(Date.now() + left * 1000)
      }
    } catch (e) {
      if (!isCancelled(e)) error.value = explain(e)
    } finally {
      if (stop === mine) running.value = ''
      await client.invalidateQueries({ queryKey: ['protocols'] })
    }
  }
  onScopeDispose(() => stop?.abort())
  return { run, cancel: () => stop?.abort(), running, quick, checks, total, result, error, finish }
}
