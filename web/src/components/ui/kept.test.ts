import { createApp, defineComponent, h, nextTick, reactive, withDirectives } from 'vue'
import { expect, test } from 'vitest'
import { vKept } from './kept'

test('what is typed stays when the component is drawn anew, and goes when the value changes', async () => {
  const state = reactive({ value: 'one' as string | undefined, problem: '' })
  const host = document.createElement('div')
  const app = createApp(
    defineComponent(
      () => () => h('label', [state.problem, withDirectives(h('input', { class: 'in' }), [[vKept, state.value]])]),
    ),
  )
  app.mount(host)
  const field = host.querySelector('input')!
  expect(field.value).toBe('one')
  field.value = 'tw'
  state.problem = 'an answer'
  await nextTick()
  expect(host.textContent).toContain('an answer')
  expect(field.value).toBe('tw')
  state.value = 'three'
  await nextTick()
  expect(field.value).toBe('three')
  state.value = undefined
  await nextTick()
  expect(field.value).toBe('')
  app.unmount()
})
