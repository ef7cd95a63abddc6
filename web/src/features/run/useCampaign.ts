// A campaign that is being watched, for pages: its model, the state of the
// connection, and a version that increases at most once a frame.
import { useQuery, useQueryClient } from '@tanstack/vue-query'
import { useEventListener } from '@vueuse/core'
import { computed, onScopeDispose, ref, shallowRef, watch, type Ref } from 'vue'
import { onBack } from '@/composables/contact'
import { control, operator } from '@/lib/api'
import { LiveSeries } from './liveSeries'
import { CampaignModel } from './campaignModel'
import { Follower, type Link } from './follower'
import { type SheetView, sheetView } from './sheet'

export function useCampaign(id: Ref<string>) {
  const model = shallowRef(new CampaignModel())
  const version = ref(0)
  const link = shallowRef<Link>({ state: 'connecting' })
  const series = new Map<string, LiveSeries>()
  const queries = useQueryClient()
  let follower: Follower | undefined
  let frame = 0

  /** Something has changed: what shows it looks again at the next frame. */
  function touch() {
    if (!frame) {
      frame = requestAnimationFrame(() => {
        frame = 0
        version.value++
      })
    }
  }
  function seriesOf(run: string): LiveSeries {
    let s = series.get(run)
    if (!s) series.set(run, (s = new LiveSeries()))
    return s
  }

  function follow(campaign: string) {
    follower?.stop()
    const mine = (model.value = new CampaignModel())
    series.clear()
    const f = (follower = new Follower({
      open: (signal) => operator.watch({ campaignId: campaign, journal: true, samples: true }, { signal }),
      probe: (signal) => operator.listRuns({ campaignId: campaign, limit: 1 }, { signal }),
      event(e) {
        if (follower !== f) return
        if (e.case === 'samples') {
          seriesOf(e.value.runId).add(e.value, offsets.get(`${e.value.runId} ${e.value.trial} ${e.value.flow}`))
          return
        }
        mine.apply(e)
        touch()
      },
      link(l) {
        if (follower !== f) return
        const back = l.state !== link.value.state && (l.state === 'live' || l.state === 'over')
        link.value = l
        // What happened in between, marks of others included.
        if (back) void queries.invalidateQueries({ queryKey: ['run', campaign] })
        touch()
      },
    }))
  }
  watch(id, (c) => follow(c), { immediate: true })
  useEventListener(window, 'online', () => follower?.now())
  onScopeDispose(onBack(() => follower?.now()))
  onScopeDispose(() => {
    follower?.stop()
    cancelAnimationFrame(frame)
  })

  /** Seconds from a trial's start to a flow's, where it is not 0. */
  const offsets = new Map<string, number>()
  return { model, version, link, seriesOf, offsets, touch, retryNow: () => follower?.now() }
}

/** One run in full: its sheet, all its trials, and all commands to it. */
export function useRun(campaign: Ref<string>, run: Ref<string | undefined>, c: ReturnType<typeof useCampaign>) {
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
  const sheet = shallowRef<SheetView>()
  let sheetOf = ''
  watch(
    [query.data, c.model],
    ([d]) => {
      if (!d?.run || d.run.campaignId !== campaign.value) return
      if (sheetOf !== d.run.id) {
        sheet.value = sheetView(d.run.id, d.sheet, c.offsets)
        sheetOf = d.run.id
      }
      c.model.value.load(d)
      const trials = c.model.value.runs.get(d.run.id)?.trials
      for (const [trial, durationSeconds] of sheet.value?.durations ?? [])
        Object.assign(trials?.get(trial) ?? {}, { durationSeconds })
      for (const trial of sheet.value?.probeTrials ?? []) Object.assign(trials?.get(trial) ?? {}, { probesAlone: true })
      c.touch()
    },
    { immediate: true },
  )
  watch(
    [commands.data, c.model],
    ([d]) => {
      for (const o of d?.commands ?? []) c.model.value.apply({ case: 'command', value: o })
      c.touch()
    },
    { immediate: true },
  )
  watch(
    run,
    (r) => {
      if (sheetOf !== r) sheet.value = undefined
      if (query.data.value?.run && query.data.value.run.id === r) {
        sheet.value = sheetView(r, query.data.value.sheet, c.offsets)
        sheetOf = r
      }
    },
    { flush: 'post' },
  )
  return { query, commands, sheet }
}
