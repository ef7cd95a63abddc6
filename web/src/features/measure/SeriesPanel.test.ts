import { create } from '@bufbuild/protobuf'
import { Code, ConnectError } from '@connectrpc/connect'
import { QueryClient, VueQueryPlugin } from '@tanstack/vue-query'
import { flushPromises, mount, RouterLinkStub } from '@vue/test-utils'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { GetMeasurementResponseSchema, GetSeriesResponseSchema, SeriesPointSchema } from '@/gen/linktrial/v1/measure_pb'
import SeriesPanel from './SeriesPanel.vue'

const calls = vi.hoisted(() => ({
  getSeries: vi.fn(),
  getMeasurement: vi.fn(),
  startMeasurement: vi.fn(),
  abortCampaign: vi.fn(),
}))
vi.mock('@/lib/api', () => ({ measure: calls, operator: calls, explain: (e: Error) => e.message }))
vi.mock('@/features/access/session', () => ({ mayNot: () => '' }))
vi.mock('@/composables/urlQuery', () => ({ useUrlQuery: () => ({ value: '' }) }))

const point = (campaignId: string, voice: string, ended = true) =>
  create(SeriesPointSchema, {
    campaignId,
    ended,
    outcome: voice,
    uses: [
      { name: 'voice', outcome: voice },
      { name: 'chat and positions', outcome: 'yes' },
    ],
    values: [
      { metric: 'delay, median', text: '30 ms' },
      { metric: 'delay, median', text: '31 ms' },
      { metric: 'loss', text: '0 %' },
    ],
    positions: [{ role: 'client', latitude: 39, longitude: -77 }],
    distanceMetres: 120,
  })
let points: ReturnType<typeof point>[] = []
const panel = () =>
  mount(SeriesPanel, {
    props: { measurement: create(GetMeasurementResponseSchema, { campaignId: 'base0' }), thresholds: {} },
    global: { plugins: [[VueQueryPlugin, { queryClient: new QueryClient() }]], stubs: { RouterLink: RouterLinkStub } },
  })
const button = (w: ReturnType<typeof panel>, text: string) => w.findAll('button').find((b) => b.text() === text)

beforeEach(() => {
  vi.useFakeTimers()
  vi.resetAllMocks()
  points = []
  calls.getSeries.mockImplementation(() =>
    Promise.resolve(create(GetSeriesResponseSchema, { campaignId: 'base0', points, moving: 'client', kml: '<kml/>' })),
  )
  calls.getMeasurement.mockResolvedValue({ ended: true })
  calls.abortCampaign.mockResolvedValue({})
  let n = 0
  calls.startMeasurement.mockImplementation(() => Promise.resolve({ campaignId: `walk${++n}`, problems: [] }))
})
afterEach(() => vi.useRealTimers())

test('a series that was made before is shown, the newest first, with a map and files', async () => {
  points = [point('walk1', 'yes'), point('walk2', 'no'), point('walk3', 'undecided', false)]
  const w = panel()
  await flushPromises()
  expect(calls.getSeries.mock.calls[0]![0]).toEqual({ campaignId: 'base0', thresholds: {} })
  const rows = w.findAll('tbody tr').map((r) => r.text().replace(/\s+/g, ' '))
  expect(rows[0]).toContain('being measured')
  expect(rows[1]).toMatch(/✕ no.*✓ yes.*30 ms \/ 31 ms.*0 %.*120 m/)
  expect(w.findAll('g[data-outcome]')).toHaveLength(2)
  expect(button(w, 'KML of the series')).toBeDefined()
  w.unmount()
})

test('measurements follow each other at the interval until Stop, which aborts the one that is running', async () => {
  const w = panel()
  await flushPromises()
  await button(w, 'Repeat while moving')!.trigger('click')
  await flushPromises()
  expect(calls.startMeasurement).toHaveBeenCalledWith({ link: { search: 'base0', track: true } })
  await vi.advanceTimersByTimeAsync(29_000)
  expect(calls.startMeasurement).toHaveBeenCalledTimes(1)
  calls.getMeasurement.mockResolvedValue({ ended: false })
  await vi.advanceTimersByTimeAsync(2_000)
  expect(calls.startMeasurement).toHaveBeenCalledTimes(2)
  await vi.advanceTimersByTimeAsync(60_000) // it takes longer than the interval
  expect(calls.startMeasurement).toHaveBeenCalledTimes(2)
  await button(w, 'Stop')!.trigger('click')
  await flushPromises()
  expect(calls.abortCampaign).toHaveBeenCalledExactlyOnceWith({
    campaignId: 'walk2',
    reason: 'the series was stopped on the page',
  })
  await vi.advanceTimersByTimeAsync(120_000)
  expect(calls.startMeasurement).toHaveBeenCalledTimes(2)
  expect(button(w, 'Repeat while moving')).toBeDefined()
  w.unmount()
})

test('a start that fails is said and tried again, unless it cannot succeed', async () => {
  calls.startMeasurement.mockRejectedValueOnce(new ConnectError('no client node is connected', Code.FailedPrecondition))
  const w = panel()
  await flushPromises()
  await button(w, 'Repeat while moving')!.trigger('click')
  await flushPromises()
  expect(w.text()).toContain('no client node is connected')
  await vi.advanceTimersByTimeAsync(31_000)
  expect(calls.startMeasurement).toHaveBeenCalledTimes(2)
  expect(w.text()).not.toContain('no client node is connected')
  calls.startMeasurement.mockRejectedValueOnce(new ConnectError('this takes a director', Code.PermissionDenied))
  await vi.advanceTimersByTimeAsync(31_000)
  await flushPromises()
  expect(w.find('[role="alert"]').text()).toContain('this takes a director')
  expect(button(w, 'Repeat while moving')).toBeDefined()
  w.unmount()
})

test('a page that is closed starts nothing more', async () => {
  const w = panel()
  await flushPromises()
  await button(w, 'Repeat while moving')!.trigger('click')
  await flushPromises()
  w.unmount()
  await vi.advanceTimersByTimeAsync(120_000)
  expect(calls.startMeasurement).toHaveBeenCalledTimes(1)
  expect(calls.abortCampaign).not.toHaveBeenCalled()
})
