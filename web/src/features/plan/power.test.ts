import { create } from '@bufbuild/protobuf'
import { mount } from '@vue/test-utils'
import { expect, it } from 'vitest'
import { ExplainPowerResponseSchema } from '@/gen/linktrial/v1/operator_pb'
import PlanPower from './PlanPower.vue'
import { linesOf, percentProblem, shareOf } from './power'

const power = create(ExplainPowerResponseSchema, {
  lines: [
    { runs: [0, 2], text: 'B against A: with 10 iterations' },
    { runs: [0], text: 'C against A: with 10 iterations' },
  ],
  note: 'Spread: a standard deviation.',
})
const none = { effect: '', spread: '' }

it('reads percentages', () => {
  expect(['', ' ', '10', '10 %', '0.1', '1000%'].map(shareOf)).toEqual([0, 0, 0.1, 0.1, 0.001, 10])
  expect(['x', '0', '-5', '1001', '1e9', 'NaN'].map(shareOf)).toEqual(Array(6).fill(undefined))
  expect(percentProblem('12')).toBeUndefined()
  expect(percentProblem(' 0 ')).toBe('Expected 0.1 to 1000 %, found “0”.')
})

it('shows the lines of the chosen run', async () => {
  expect(linesOf(power, 2)).toEqual(['B against A: with 10 iterations'])
  const w = mount(PlanPower, { props: { power, run: 0, modelValue: none } })
  expect(w.findAll('.line').map((l) => l.text())).toEqual([
    'B against A: with 10 iterations.',
    'C against A: with 10 iterations.',
  ])
  expect(w.text()).toContain('Spread: a standard deviation. It is assumed where no earlier run has the comparison.')
  await w.setProps({ run: 1 })
  expect(w.text()).toContain('The run compares no treatments.')
  await w.setProps({ power: create(ExplainPowerResponseSchema, { problems: [{ message: 'unknown radio' }] }) })
  expect(w.text()).toBe('')
})

it('asks for an effect and says what is wrong with one', async () => {
  const w = mount(PlanPower, { props: { power, run: 0, modelValue: none } })
  await w.find('input').setValue('15')
  expect(w.emitted('update:modelValue')).toEqual([[{ effect: '15', spread: '' }]])
  await w.setProps({ modelValue: { effect: 'much', spread: '' } })
  expect(w.text()).toContain('found “much”')
  expect(w.find('input').attributes('aria-invalid')).toBe('true')
})
