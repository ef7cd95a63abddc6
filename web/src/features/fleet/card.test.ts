import { create } from '@bufbuild/protobuf'
import { mount, RouterLinkStub } from '@vue/test-utils'
import { expect, it } from 'vitest'
import { NodeSchema } from '@/gen/linktrial/v1/operator_pb'
import NodeCard from './NodeCard.vue'

const card = (clockOffsetSeconds: number, clockOffsetKnown = true) =>
  mount(NodeCard, {
    props: { node: create(NodeSchema, { name: 'server', clockOffsetSeconds, clockOffsetKnown }), versions: 1 },
    global: { stubs: { RouterLink: true } },
  })

it.each([
  [180, '3 min 0 s behind'],
  [-180, '3 min 0 s ahead'],
  [0.25, '250 ms behind'],
])('a card whose clock is off by %f s is coloured and says so', (seconds, words) => {
  const w = card(seconds)
  expect(w.find('.fault.bad-text').text()).toContain(`Its clock is ${words}`)
  expect(w.find('dd.bad-text').text()).toContain(words)
  w.unmount()
})

it.each([
  [0.09, true],
  [0, true],
  [180, false],
])('a card with %f s (known: %s) is not', (seconds, known) => {
  const w = card(seconds, known)
  expect(w.find('.fault').exists()).toBe(false)
  expect(w.find('dd.bad-text').exists()).toBe(false)
  w.unmount()
})

it.each([
  [{ radio: '', radioAddress: '' }, 'no radio set up', 'no role yet'],
  [{ radio: '', radioAddress: '10.78.0.1', role: 'client' }, 'real, unnamed · 10.78.0.1', 'client'],
  [{ radio: 'mpu5', radioAddress: '10.78.0.1', role: 'relay' }, 'mpu5 · 10.78.0.1', 'relay'],
  [{ emulated: true, role: 'server' }, 'emulated, any profile', 'server'],
])('a card of %j says of its radio: %s', (node, radio, role) => {
  const w = mount(NodeCard, {
    props: { node: create(NodeSchema, { name: 'alpha', ...node }), versions: 1 },
    global: { stubs: { RouterLink: RouterLinkStub } },
  })
  const at = w.findAll('dt').findIndex((d) => d.text() === 'Radio')
  expect(w.findAll('dd')[at]!.text()).toBe(radio)
  expect(w.find('.role').text()).toBe(role)
  w.unmount()
})
