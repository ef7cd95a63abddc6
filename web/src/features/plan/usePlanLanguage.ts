// The language of plans, with the names that the orchestrator and the plan's text have.
import { useQuery } from '@tanstack/vue-query'
import { computed, type Ref } from 'vue'
import { useCatalog } from '@/composables/catalog'
import { catalog } from '@/lib/api'
import { fromUtf8 } from '@/lib/utf8'
import type { PlanView } from './form'
import type { Language, Schema, Word } from './language'
import { useManifests } from './usePlanDrivers'

/** The readings that the profiles of a plan's radios name. */
export function useReadings(view: Readonly<Ref<PlanView>>) {
  const { sources } = useCatalog()
  return computed(() => {
    const ours = sources.value.filter((t) => view.value.radios?.includes(t.radio))
    return [...new Set(ours.flatMap((t) => t.values).map((v) => v.name))].sort()
  })
}

export function usePlanLanguage(view: Readonly<Ref<PlanView>>) {
  const query = useQuery({
    queryKey: ['language', 'plan'],
    queryFn: ({ signal }) => catalog.getLanguage({ document: 'plan' }, { signal }),
    staleTime: Infinity,
  })
  const schema = computed(() => query.data.value && (JSON.parse(fromUtf8(query.data.value.schema)) as Schema))
  const readings = useReadings(view)
  const { radios, topologies } = useCatalog()
  const { manifests } = useManifests()
  const names: Record<string, () => Word[]> = {
    radio: () => radios.value.map((r) => ({ name: r.name, detail: r.title })),
    topology: () => topologies.value.map((t) => ({ name: t.name, detail: t.title })),
    driver: () => manifests.value.map((m) => ({ name: m.name, detail: m.title })),
    reading: () => readings.value.map((name) => ({ name })),
  }
  return computed<Language | undefined>(
    () =>
      schema.value && {
        schema: schema.value,
        names: (what) => names[what]?.() ?? [],
        options: (driver) => manifests.value.find((m) => m.name === driver)?.options,
      },
  )
}
