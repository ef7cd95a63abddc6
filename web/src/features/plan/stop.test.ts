import { create } from '@bufbuild/protobuf'
import { mount } from '@vue/test-utils'
import { expect, it } from 'vitest'
import { ref } from 'vue'
import { ExplainPlanResponseSchema, ProblemSchema } from '@/gen/linktrial/v1/operator_pb'
import { viewOf } from './form'
import { mayEndEarly } from './order'
import { planProblems } from './problems'
import { stopOf, stopStated } from './stop'
import StopFields from './StopFields.vue'
import { edit, readText } from './text'
import { plain } from './values'

const of = (text: string) => {
  const p = readText(text)
  return stopOf(p, plain(p.value).stop)
}
const bare = 'name: a\niterations: 30\norder: random\n'

it('reads a rule', () => {
  expect(of(bare)).toEqual({ stated: false, first: '', every: '', spending: '', alpha: '' })
  expect(of(`${bare}stop: {first: 10, every: 5, alpha: 1 %}\n`)).toEqual({
    stated: true,
    first: '10',
    every: '5',
    spending: '',
    alpha: '1 %',
  })
})

it('leaves to the text what it cannot show, and says so', () => {
  expect(of('stop: 3\n')).toBeUndefined()
  expect(of('stop: {first: [1]}\n')).toBeUndefined()
  const shared = viewOf(readText('stop: &s {first: 10, every: 5}\ngroups: [{name: g, stop: *s}]\n'))
  expect(shared.stop).toBeUndefined()
  expect(shared.inText.map((t) => [t.key, t.line])).toContainEqual(['stop', 1])
})

it('gives a plan a rule behind its iterations and takes it away again', () => {
  const ruled = edit(bare, ...stopStated(true))
  expect(ruled).toBe('name: a\niterations: 30\nstop: {first: 10, every: 5}\norder: random\n')
  expect(edit(ruled, ...stopStated(false))).toBe(bare)
})

it('has fields of a rule that is stated, with problems at them', async () => {
  const problem = (path: string, message: string) => create(ProblemSchema, { path, message, line: 1 })
  const w = mount(StopFields, {
    props: { stop: of(bare)!, grouped: false },
    global: {
      provide: {
        [planProblems as symbol]: ref([
          problem('stop', 'stop: compares 2 to 20'),
          problem('stop.first', 'stop.first: too late'),
        ]),
      },
    },
  })
  expect(w.find('.fields').exists()).toBe(false)
  await w.find('input').setValue(true)
  await w.setProps({ stop: of('stop: {first: 10, every: 5}\n')! })
  expect(w.find('#stop-problem').text()).toBe('✕ stop: compares 2 to 20')
  expect(w.find('[data-field="stop.first"]').text()).toContain('✕ too late')
  await w.find('[data-field="stop.every"] input').setValue('7')
  await w.find('[data-field="stop.alpha"] input').setValue('2 %')
  await w.find('[data-field="stop.first"] input').setValue('')
  expect(w.emitted('edits')).toEqual([
    [[[['stop'], { first: 10, every: 5 }]]],
    [[[['stop', 'every'], 7]]],
    [[[['stop', 'alpha'], '2 %']]],
    [[[['stop', 'first'], undefined]]],
  ])
})

it('knows whether a run may end early', () => {
  const sheet = (more: object) => ({ sheet: new TextEncoder().encode(JSON.stringify({ cell: {}, ...more })) })
  const answer = (...sheets: object[]) => create(ExplainPlanResponseSchema, { sheets: sheets.map(sheet) })
  expect(mayEndEarly(answer({}, {}))).toBe(false)
  expect(mayEndEarly(answer({}, { stop: { looks: [10, 30] } }))).toBe(true)
})
