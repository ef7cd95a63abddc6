import { create } from '@bufbuild/protobuf'
import { mount } from '@vue/test-utils'
import { describe, expect, it } from 'vitest'
import { ref } from 'vue'
import { ProblemSchema } from '@/gen/linktrial/v1/operator_pb'
import TreatmentCard from './TreatmentCard.vue'
import type { Manifest } from './drivers'
import { viewOf } from './form'
import { atField, fieldOf, focusFirst, ofFields, pathOf, planProblems, problemsAt, stepsOf } from './problems'
import { readText } from './text'

const problem = (path: string, message: string, line = 1) => create(ProblemSchema, { path, message, line })

describe('paths', () => {
  it('are those of the text', () => {
    expect(stepsOf('treatments[1].options.mss')).toEqual(['treatments', 1, 'options', 'mss'])
    expect(stepsOf('size[0]')).toEqual(['size', 0])
    expect(pathOf(['treatments', 1, 'options', 'mss'])).toBe('treatments[1].options.mss')
  })
  it('belong to a field with all their parts, and to no field whose name only begins alike', () => {
    const all = [problem('size[1]', 'a'), problem('size', 'b'), problem('sizes', 'c'), problem('', 'd')]
    expect(problemsAt(all, 'size').map((p) => p.message)).toEqual(['a', 'b'])
  })
  it('are not repeated at the field', () => {
    expect(atField([problem('limits.pause', 'limits.pause: expected a duration')], 'limits.pause')).toBe(
      'expected a duration',
    )
    expect(atField([problem('size[1]', 'size[1]: expected a size')], 'size')).toBe('[1]: expected a size')
    expect(atField([problem('name', 'name is missing')], 'name')).toBe('name is missing')
  })
  it('of a group are no field of the form', () => {
    const text = readText('treatments:\n  - {name: x}\ngroups:\n  - {name: g, treatments: [{name: 3 4}]}\n')
    const all = [problem('treatments[0].name', 'of the group', 4), problem('treatments[0].name', 'of the list', 2)]
    expect(ofFields(all, text, true).map((p) => p.message)).toEqual(['of the list'])
    expect(ofFields(all, text, false)).toHaveLength(2)
  })
})

describe('a treatment', () => {
  const text = readText('treatments:\n  - {name: a, protocol: tcp, options: {mss: abc}}\n')
  const manifest = {
    name: 'tcp',
    title: 'TCP',
    options: [{ name: 'mss', type: 'size', help: 'segment size' }],
  } as unknown as Manifest
  const card = (problems: ReturnType<typeof problem>[]) =>
    mount(TreatmentCard, {
      props: {
        treatment: viewOf(text).treatments![0]!,
        index: 0,
        last: true,
        manifests: [manifest],
        nodes: [],
        here: new Map(),
      },
      global: { provide: { [planProblems as symbol]: ref(problems) } },
      attachTo: document.body,
    })

  it('has a problem at the field that it is of, and is described by it', () => {
    const w = card([problem('treatments[0].options.mss', 'treatments[0].options.mss: expected a size')])
    const field = w.find('[data-field="treatments[0].options.mss"]')
    const input = field.find('input')
    expect(input.attributes('aria-invalid')).toBe('true')
    const ids = input.attributes('aria-describedby')!.split(' ')
    expect(field.find(`[id="${ids[0]}"]`).text()).toBe('✕ expected a size')
    expect(w.find('[data-field="treatments[0].name"] input').attributes('aria-invalid')).toBeUndefined()
    w.unmount()
  })
  it('has one that is of no field of its own at its head', () => {
    const w = card([problem('treatments[0].second_radio', 'treatments[0].second_radio: expected a number')])
    expect(w.find('.problems').text()).toContain('treatments[0].second_radio: expected a number')
    w.unmount()
  })
  it('takes the focus to the first field in the order of the page', () => {
    const second = problem('treatments[0].options.mss', 'x')
    const first = problem('treatments[0].label', 'y')
    const w = card([second, first])
    expect(fieldOf(w.element, second)?.dataset.field).toBe('treatments[0].options.mss')
    expect(focusFirst(document, [second, first])).toBe(true)
    expect(document.activeElement?.closest<HTMLElement>('[data-field]')?.dataset.field).toBe('treatments[0].label')
    expect(focusFirst(document, [problem('published', 'z')])).toBe(false)
    w.unmount()
  })
})
