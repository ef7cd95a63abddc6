// A series of measurements while somebody moves: the page starts one after the other.
import { Code, ConnectError } from '@connectrpc/connect'
import { useQuery } from '@tanstack/vue-query'
import { computed, onScopeDispose, ref, type Ref } from 'vue'
import { FormError } from '@/composables/submit'
import { useUrlQuery } from '@/composables/urlQuery'
import type { MeasuredValue, SeriesPoint } from '@/gen/linktrial/v1/measure_pb'
import { explain, measure, operator } from '@/lib/api'
import type { ThresholdRequest } from './thresholds'

/** How often a measurement can be started, in seconds. */
export const intervals = [10, 20, 30, 60, 120, 300, 600]
const usualInterval = 30

/** Both ways of a metric in one text: "30 ms / 31 ms". */
export function bothWays(values: readonly MeasuredValue[], metric: string): string {
  return values
    .filter((v) => v.metric === metric)
    .map((v) => v.text)
    .join(' / ')
}

export const outcomeOf = (p: SeriesPoint, use: string) => p.uses.find((u) => u.name === use)?.outcome

/** Another try cannot succeed. */
function final(e: unknown): boolean {
  return [
    Code.PermissionDenied,
    Code.Unauthenticated,
    Code.NotFound,
    Code.InvalidArgument,
    Code.Unimplemented,
  ].includes(ConnectError.from(e).code)
}

export function useSeries(campaign: string, thresholds: Ref<ThresholdRequest>) {
  const on = ref(false)
  const query = useQuery({
    queryKey: computed(() => ['series', campaign, thresholds.value]),
    queryFn: ({ signal }) => measure.getSeries({ campaignId: campaign, thresholds: thresholds.value }, { signal }),
    placeholderData: (old) => old,
    // A point that another page or the command line has started, or this one before a reload.
    // While this page makes the series, it knows when there is something new.
    refetchInterval: (q) => (!on.value && q.state.data?.points.some((p) => !p.ended) ? 3000 : false),
  })
  const shown = useUrlQuery('campaign')
  const every = ref(usualInterval)
  const trouble = ref('')
  const current = ref('') // the point that is being measured
  let wake = () => {}
  const pause = (ms: number) =>
    new Promise<void>((done) => {
      const timer = setTimeout(done, Math.max(0, ms))
      wake = () => {
        clearTimeout(timer)
        done()
      }
    })

  /** Waits until the point has ended. What does not answer is asked again. */
  async function ended(id: string) {
    while (on.value) {
      try {
        if ((await measure.getMeasurement({ campaignId: id })).ended) return
        trouble.value = ''
      } catch (e) {
        if (final(e)) throw e
        trouble.value = explain(e)
      }
      await pause(1000)
    }
  }
  async function one() {
    const res = await measure.startMeasurement({ link: { search: campaign, track: true } })
    if (res.problems.length) throw new FormError(res.problems.map((p) => p.message).join(' '))
    trouble.value = ''
    if (!on.value) return abort(res.campaignId) // stopped meanwhile
    current.value = res.campaignId
    void query.refetch()
    await ended(res.campaignId)
    if (on.value) current.value = ''
    void query.refetch()
  }
  async function repeat() {
    if (on.value) return
    shown.value = campaign // a newer measurement would take its place on the page
    on.value = true
    while (on.value) {
      const due = Date.now() + 1000 * every.value
      try {
        await one()
      } catch (e) {
        // A node that is carried away may be out of reach for a while: it is tried again.
        trouble.value = e instanceof FormError ? e.message : explain(e)
        if (!(e instanceof FormError) && final(e)) on.value = false
      }
      if (on.value) await pause(due - Date.now())
    }
  }
  function halt() {
    on.value = false
    wake()
  }
  const abort = async (id: string) =>
    void (await operator.abortCampaign({ campaignId: id, reason: 'the series was stopped on the page' }))
  /** Ends the series, and the point that is being measured. */
  async function stop() {
    halt()
    const id = current.value
    current.value = ''
    if (id) await abort(id)
    await query.refetch()
  }
  onScopeDispose(halt)
  return { query, every, on, trouble, repeat, stop }
}
