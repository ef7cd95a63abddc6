import { create } from '@bufbuild/protobuf'
import { QueryClient, VueQueryPlugin } from '@tanstack/vue-query'
import { flushPromises, mount } from '@vue/test-utils'
import { beforeEach, expect, test, vi } from 'vitest'
import { ProposeComparisonResponseSchema } from '@/gen/linktrial/v1/measure_pb'
import { fromUtf8 } from '@/lib/utf8'
import CompareProtocols from './CompareProtocols.vue'

const calls = vi.hoisted(() => ({
  proposeComparison: vi.fn(),
  listNodes: vi.fn(),
  startPlan: vi.fn(),
  listPlans: vi.fn(),
  savePlan: vi.fn(),
  push: vi.fn(),
}))
vi.mock('@/lib/api', () => ({ measure: calls, operator: calls, library: calls, explain: (e: Error) => e.message }))
vi.mock('@/features/access/session', () => ({ mayNot: () => '' }))
vi.mock('vue-router', () => ({ useRouter: () => ({ push: calls.push }) }))

const proposal = (budget: number) =>
  create(ProposeComparisonResponseSchema, {
    campaignId: 'm4t7xk2p',
    plan: 'compare',
    text: '# By the campaign m4t7xk2p.\nname: compare\nsize: 1536 KiB\n',
    estimatedSeconds: budget * 0.9,
    boundSeconds: 3 * budget,
    sizeBytes: 1572864n,
    iterations: budget / 30,
    labels: ['TCP CUBIC', 'Haul'],
    smallestDifference: budget < 1200 ? undefined : 0.1234,
    decides: budget >= 1200,
    sentences: [
      'TCP CUBIC, Haul: all that the list has.',
      budget < 1200 ? 'It cannot decide anything.' : 'It finds 12.3 %.',
    ],
  })
const panel = () =>
  mount(CompareProtocols, {
    props: { campaign: 'm4t7xk2p' },
    global: {
      plugins: [[VueQueryPlugin, { queryClient: new QueryClient() }]],
      stubs: { ModalDialog: { props: ['show'], template: '<div v-if="show"><slot /></div>' } },
    },
  })
const press = async (w: ReturnType<typeof panel>, text: string) => {
  await w
    .findAll('button')
    .find((b) => b.text() === text)!
    .trigger('click')
  await flushPromises()
}
beforeEach(() => {
  vi.resetAllMocks()
  calls.proposeComparison.mockImplementation((r: { budgetSeconds: number }) =>
    Promise.resolve(proposal(r.budgetSeconds)),
  )
  calls.listNodes.mockResolvedValue({ nodes: [{ name: 'alpha', connected: true }] })
  calls.listPlans.mockResolvedValue({ plans: [{ name: 'compare-m4t7xk2p' }] })
  calls.savePlan.mockResolvedValue({})
})

test('nothing is asked before the button, and then the proposal is shown with what it decides', async () => {
  const w = panel()
  await flushPromises()
  expect(calls.proposeComparison).not.toHaveBeenCalled()
  await press(w, 'Compare protocols')
  expect(calls.proposeComparison.mock.calls[0]![0]).toEqual({ campaignId: 'm4t7xk2p', budgetSeconds: 1200 })
  expect(w.findAll('dd').map((d) => d.text())).toEqual([
    'TCP CUBIC, Haul',
    '40 iterations, each protocol 1.50 MiB',
    'about 18 min 0 s, at most 1 h 0 min',
    '12.3 % with 80 % chance',
  ])
  expect(w.text()).toContain('It finds 12.3 %.')
  expect(w.text()).not.toContain('all that the list has')
})

test('another time is proposed anew, and what cannot be decided is said', async () => {
  const w = panel()
  await press(w, 'Compare protocols')
  await w.find('select').setValue('10')
  await flushPromises()
  expect(calls.proposeComparison.mock.calls.at(-1)![0].budgetSeconds).toBe(600)
  expect(w.text()).toContain('It cannot decide anything.')
  expect(w.findAll('dd').at(-1)!.text()).toBe('none')
})

test('a refusal is shown, and nothing can be started', async () => {
  calls.proposeComparison.mockRejectedValue(new Error('not one iteration fits into 10 min'))
  const w = panel()
  await press(w, 'Compare protocols')
  expect(w.find('[role=alert]').text()).toContain('not one iteration fits into 10 min')
  expect(w.findAll('button').map((b) => b.text())).not.toContain('Start')
})

test('the plan starts as it was proposed, and its run is shown', async () => {
  calls.startPlan.mockResolvedValue({ campaignId: 'h8w3rnbz', problems: [], withoutPreflight: [] })
  const w = panel()
  await press(w, 'Compare protocols')
  await press(w, 'Start')
  expect(w.text()).toContain('1 nodes are connected: alpha.')
  await w.find('form').trigger('submit')
  await flushPromises()
  expect(fromUtf8(calls.startPlan.mock.calls[0]![0].text)).toContain('# By the campaign m4t7xk2p.')
  expect(calls.push).toHaveBeenCalledWith('/runs/h8w3rnbz')
})

test('the plan is saved under a free name to be changed', async () => {
  const w = panel()
  await press(w, 'Compare protocols')
  await press(w, 'Change the plan')
  const saved = calls.savePlan.mock.calls[0]![0]
  expect(saved.name).toBe('compare-m4t7xk2p-2')
  expect(fromUtf8(saved.text)).toContain('name: compare-m4t7xk2p-2\nsize: 1536 KiB')
  expect(calls.push).toHaveBeenCalledWith('/plans/compare-m4t7xk2p-2')
})
