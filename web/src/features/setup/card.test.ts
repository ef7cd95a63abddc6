import { create } from '@bufbuild/protobuf'
import { QueryClient, VueQueryPlugin } from '@tanstack/vue-query'
import { flushPromises, mount } from '@vue/test-utils'
import { beforeEach, expect, test, vi } from 'vitest'
import { NodeRadioSchema } from '@/gen/linktrial/v1/interface_pb'
import { NodeSchema } from '@/gen/linktrial/v1/operator_pb'
import SetupCard from './SetupCard.vue'

const calls = vi.hoisted(() => ({ proposeRadio: vi.fn(), setRadio: vi.fn(), removeRadio: vi.fn() }))
vi.mock('@/lib/api', () => ({ fleet: calls, explain: (e: Error) => e.message }))
vi.mock('@/composables/catalog', () => ({ useCatalog: () => ({ radios: [] }) }))
vi.mock('@/features/access/session', () => ({ mayNot: () => '' }))

const radio = create(NodeRadioSchema, { interface: 'eth1', address: '10.77.0.1/24', role: 'client' })
const card = (radios: (typeof radio)[] = [], fixed = '') =>
  mount(SetupCard, {
    props: {
      node: create(NodeSchema, {
        name: 'alpha',
        interfaces: {
          interfaces: [
            { name: 'eth1', kind: 'usb', verdict: 1, points: [{ text: 'it is an adapter on USB' }] },
            { name: 'eth0', kind: 'wired', verdict: 3, points: [{ against: true, text: 'it is the control network' }] },
          ],
        },
        radios: { radios, fixed },
      }),
    },
    global: { plugins: [[VueQueryPlugin, { queryClient: new QueryClient() }]] },
  })
beforeEach(() => {
  vi.resetAllMocks()
  calls.proposeRadio.mockResolvedValue({ radio })
  calls.setRadio.mockResolvedValue({ done: true, text: 'eth1 has the address 10.77.0.1/24' })
  calls.removeRadio.mockResolvedValue({ done: true, text: 'eth1 is as it was before' })
})

test('interfaces are rows with what speaks for and against them', async () => {
  const w = card()
  await flushPromises()
  const rows = w.findAll('.row')
  expect(rows.map((r) => r.find('input').attributes('disabled') !== undefined)).toEqual([false, true])
  expect(rows[0]!.text()).toContain('likely the radio')
  expect(rows[0]!.text()).toContain('for: it is an adapter on USB')
  expect(rows[1]!.text()).toContain('against: it is the control network')
})

test('the likely one is chosen, its fields are proposed, and it is tried', async () => {
  const w = card()
  await flushPromises()
  expect(calls.proposeRadio).toHaveBeenCalledWith({ node: 'alpha', role: '', interface: 'eth1' })
  expect(w.findAll('.fields input').map((i) => (i.element as HTMLInputElement).value)).toEqual(['10.77.0.1/24', ''])
  await w.find('form').trigger('submit')
  await flushPromises()
  expect(calls.setRadio).toHaveBeenCalledWith({
    node: 'alpha',
    radio: { interface: 'eth1', address: '10.77.0.1/24', role: 'client', mtuBytes: 0, routes: [], profile: '' },
  })
  expect(w.find('[role="status"]').text()).toContain('eth1 has the address 10.77.0.1/24')
})

test('a radio that is set up shows its settings, and is removed', async () => {
  const w = card([create(NodeRadioSchema, { ...radio, address: '10.77.5.1/24' })])
  await flushPromises()
  expect(calls.proposeRadio).not.toHaveBeenCalled()
  expect((w.find('.fields input').element as HTMLInputElement).value).toBe('10.77.5.1/24')
  const remove = w.findAll('button').find((b) => b.text() === 'Remove')!
  await remove.trigger('click')
  await flushPromises()
  expect(calls.removeRadio).toHaveBeenCalledWith({ node: 'alpha', interface: 'eth1' })
  expect(w.find('[role="status"]').text()).toContain('eth1 is as it was before')
})

test('what a laptop was started with cannot be changed here', async () => {
  const w = card([], 'this agent was started with --device eth1')
  await flushPromises()
  expect(w.text()).toContain('this agent was started with --device eth1')
  expect(w.find('button').attributes('disabled')).toBeDefined()
})
