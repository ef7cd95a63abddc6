// A campaign that is being watched, for pages: its store, to which events go once a
// frame, and the state of the connection.
import { useQuery, useQueryClient } from '@tanstack/vue-query'
import { useEventListener } from '@vueuse/core'
import { computed, onScopeDispose, shallowRef, watch, type Ref } from 'vue'
import { onBack } from '@/composables/contact'
import type { WatchResponse } from '@/gen/linktrial/v1/operator_pb'
import { control, operator } from '@/lib/api'
import { Follower, type Link } from '@/lib/follower'
import { CampaignStore, type Received } from './campaignStore'
import { perFrame, type PerFrame } from './perFrame'

export function useCampaign(id: Ref<string>) {
  const store = shallowRef(new CampaignStore())
  const link = shallowRef<Link>({ state: 'connecting' })
  const queries = useQueryClient()
  let follower: Follower<WatchResponse> | undefined
  let arrived: PerFrame<Received> | undefined

  function stop() {
    follower?.stop()
    arrived?.stop()
  }
  function follow(campaign: string) {
    stop()
    const mine = (store.value = new CampaignStore())
    const queue = (arrived = perFrame<Received>((batch) => mine.apply(batch)))
    const f = (follower = new Follower<WatchResponse>({
      open: (signal) => operator.watch({ campaignId: campaign, journal: true, samples: true }, { signal }),
      probe: (signal) => operator.listRuns({ campaignId: campaign, limit: 1 }, { signal }),
      event({ event }) {
        if (follower === f) queue.add({ event, at: Date.now() })
      },
      link(l) {
        if (follower !== f) return
        // It is told with every event.
        if (l.state === 'live' && link.value.state === 'live') return
        // What came before it is shown before it.
        queue.flush()
        const back = l.state !== link.value.state && (l.state === 'live' || l.state === 'over')
        link.value = l
        // What happened in between, marks of others included.
        if (back) void queries.invalidateQueries({ queryKey: ['run', campaign] })
      },
    }))
  }
  watch(id, (c) => follow(c), { immediate: true })
  useEventListener(window, 'online', () => follower?.now())
  onScopeDispose(onBack(() => follower?.now()))
  onScopeDispose(stop)

  return { store, link, retryNow: () => follower?.now() }
}

/** One run in full: its sheet, all its trials, and all commands to it. */
export function useRun(campaign: Ref<string>, run: Ref<string | undefined>, store: Ref<CampaignStore>) {
  const enabled = computed(() => !!run.value)
  const query = useQuery({
    queryKey: ['run', campaign, run],
    queryFn: ({ signal }) => operator.getRun({ runId: run.value! }, { signal }),
    enabled,
    staleTime: Infinity,
  })
  const commands = useQuery({
    queryKey: ['run', campaign, run, 'commands'],
    queryFn: ({ signal }) => control.listCommands({ runId: run.value! }, { signal }),
    enabled,
    staleTime: Infinity,
  })
  watch(
    [query.data, store],
    ([d, into]) => {
      if (d?.run?.campaignId === campaign.value) into.load(d)
    },
    { immediate: true },
  )
  watch(
    [commands.data, store],
    ([d, into]) => {
      const at = Date.now()
      into.apply((d?.commands ?? []).map((value) => ({ event: { case: 'command', value }, at })))
    },
    { immediate: true },
  )
  return { query, commands, run: computed(() => (run.value ? store.value.runs.get(run.value) : undefined)) }
}
