import { create } from '@bufbuild/protobuf'
import { flushPromises, mount } from '@vue/test-utils'
import { expect, test } from 'vitest'
import { computed, defineComponent, h, ref } from 'vue'
import { createMemoryHistory, createRouter } from 'vue-router'
import { ThresholdRangeSchema } from '@/gen/linktrial/v1/measure_pb'
import ThresholdForm from './ThresholdForm.vue'
import { problemOf, requestOf, rowOf, useThresholds } from './thresholds'

const range = (key: string, unit: string, scale: number, defaultValue: number, lowest: number, highest: number) =>
  create(ThresholdRangeSchema, { key, label: key, unit, scale, defaultValue, lowest, highest, bounds: 'all that is' })
const ranges = [
  range('voice_mos', 'MOS', 1, 3.6, 1, 4.41),
  range('chat_loss', '%', 0.01, 0.05, 0, 1),
  range('file', 'MiB', 1 << 20, 10 << 20, 1, 2 ** 40),
]

test('what was entered is checked in the unit that people read, and sent in the unit of the request', () => {
  expect(rowOf(ranges[1]!, '').usual).toBe('5')
  expect(problemOf(ranges[1]!, '2.5')).toBe('')
  for (const wrong of ['101', '-1', '2,5', 'x', '1e1', ' '])
    expect(problemOf(ranges[1]!, wrong), wrong).toContain(`Expected a number of % (all that is), found “${wrong}”`)
  expect(requestOf(ranges, { voice_mos: '9', chat_loss: '2.5', file: '' })).toEqual({ chatLoss: 0.025 })
  expect(requestOf(ranges, { file: '2' })).toEqual({ fileBytes: 2 << 20 })
  expect(requestOf(ranges, {})).toEqual({})
})

/** The form as the page has it. */
async function form(address: string) {
  const router = createRouter({
    history: createMemoryHistory(),
    routes: [{ path: '/measure', component: { render: () => null } }],
  })
  await router.push(address)
  const request = ref<unknown>()
  const page = defineComponent({
    setup() {
      const t = useThresholds(computed(() => ranges))
      return () => {
        request.value = t.request.value
        return h(ThresholdForm, { rows: t.rows.value, onSet: t.set, onReset: t.reset })
      }
    },
  })
  return { w: mount(page, { global: { plugins: [router] } }), router, request }
}

test('a change is in the address at once and leaves the rest of it; a mistake is said beside its field', async () => {
  const { w, router, request } = await form('/measure?campaign=m4t7xk2p')
  const details = w.find('details')
  expect(details.attributes('open')).toBeUndefined()
  const [mos, loss] = w.findAll('input')
  await mos!.setValue('3.1')
  await flushPromises()
  expect(router.currentRoute.value.query).toEqual({ campaign: 'm4t7xk2p', 'voice-mos': '3.1' })
  expect(request.value).toEqual({ voiceMos: 3.1 })
  await loss!.setValue('500')
  await flushPromises()
  expect(request.value).toEqual({ voiceMos: 3.1 })
  expect(w.findAll('.problem').map((p) => p.text())).toEqual([
    '✕ Expected a number of % (all that is), found “500”. The default is used.',
  ])
  expect(loss!.attributes('aria-invalid')).toBe('true')
  expect(w.find('summary').text()).toBe('Thresholds (2 changed)')
  await w.find('button').trigger('click')
  await flushPromises()
  expect(router.currentRoute.value.query).toEqual({ campaign: 'm4t7xk2p' })
  expect(request.value).toEqual({})
  expect(w.find('button').attributes('disabled')).toBeDefined()
  w.unmount()
})

test('a link shows the same judgement, and its mistakes', async () => {
  const { w, request } = await form('/measure?file=2&chat-loss=lots')
  expect(request.value).toEqual({ fileBytes: 2 << 20 })
  expect(w.find('details').attributes('open')).toBeDefined()
  expect(w.findAll('.problem')).toHaveLength(1)
  w.unmount()
})
