// Campaigns, summaries and sweeps, as the orchestrator answers.
import { keepPreviousData, useInfiniteQuery, useQuery } from '@tanstack/vue-query'
import { computed, markRaw, type Ref } from 'vue'
import { operator, results } from '@/lib/api'
import { isPartial } from './model'

const pageSize = 50

/** While runs are open, their values change. */
const refreshMs = 5_000

export function useCampaigns(enabled: Ref<boolean>) {
  const query = useInfiniteQuery({
    queryKey: ['results', 'campaigns'],
    queryFn: ({ pageParam, signal }) => results.listCampaigns({ limit: pageSize, before: pageParam }, { signal }),
    initialPageParam: '',
    getNextPageParam: (last) => (last.more ? last.campaigns.at(-1)?.id : undefined),
    enabled,
    shallow: true,
    structuralSharing: false,
  })
  return { query, campaigns: computed(() => query.data.value?.pages.flatMap((p) => p.campaigns) ?? []) }
}

/** Campaigns that other orchestrators have measured. */
export function useImports(enabled: Ref<boolean>) {
  return useQuery({
    queryKey: ['results', 'imports'],
    queryFn: async ({ signal }) => (await results.listImports({}, { signal })).imports,
    enabled,
    shallow: true,
    structuralSharing: false,
  })
}

export function useCampaignRuns(campaign: Ref<string>) {
  return useQuery({
    queryKey: computed(() => ['runs', 'campaign', campaign.value]),
    queryFn: ({ signal }) => operator.listRuns({ campaignId: campaign.value, limit: 10_000 }, { signal }),
    enabled: computed(() => !!campaign.value),
    shallow: true,
    structuralSharing: false,
  })
}

/** Summaries of campaigns and runs, with every attempt as a point. Tens of thousands of values: nothing in them is reactive. */
export function useSummary(ids: Ref<string[]>, reference: Ref<string>) {
  return useQuery({
    queryKey: computed(() => ['summary', ids.value, reference.value]),
    queryFn: async ({ signal }) =>
      markRaw(await results.summarize({ ids: ids.value, reference: reference.value, points: true }, { signal })),
    enabled: computed(() => ids.value.length > 0),
    // Another reference changes some columns; what is shown stays until they are there.
    placeholderData: (old, query) =>
      query && JSON.stringify(query.queryKey[1]) === JSON.stringify(ids.value) ? old : undefined,
    refetchInterval: (query) => (query.state.data?.runs.some((r) => isPartial(r) && !r.run?.ended) ? refreshMs : false),
    staleTime: 10_000,
    shallow: true,
    structuralSharing: false,
  })
}

export function useSweep(campaign: Ref<string>, axis: Ref<string>, metric: Ref<string>) {
  return useQuery({
    queryKey: computed(() => ['sweep', campaign.value, axis.value, metric.value]),
    queryFn: async ({ signal }) =>
      markRaw(await results.sweep({ campaignId: campaign.value, axis: axis.value, metric: metric.value }, { signal })),
    enabled: computed(() => !!campaign.value),
    placeholderData: keepPreviousData,
    shallow: true,
    structuralSharing: false,
  })
}

/** Series of all treatments in one iteration, thinned by the server. */
export function useSequence(run: Ref<string>, iteration: Ref<number>) {
  return useQuery({
    queryKey: computed(() => ['sequence', run.value, iteration.value]),
    queryFn: async ({ signal }) =>
      markRaw(await results.series({ runId: run.value, iteration: iteration.value, maxPoints: 600 }, { signal })),
    enabled: computed(() => !!run.value && iteration.value > 0),
    placeholderData: keepPreviousData,
    shallow: true,
    structuralSharing: false,
  })
}
