import { mount } from '@vue/test-utils'
import { expect, it, vi } from 'vitest'
import FigureGrid from './FigureGrid.vue'
import type { FigureSpec } from './parts'

const panel = (i: number): FigureSpec => ({
  key: `${i}`,
  title: `panel ${i + 1}`,
  label: '',
  height: 330,
  build: () => ({}),
})
const grid = (n: number) =>
  mount(FigureGrid, {
    props: { figures: Array.from({ length: n }, (_, i) => panel(i)), title: 'plan', caption: '', legend: [] },
    global: { stubs: { FigureChart: true } },
    attachTo: document.body,
  })

it('shows a figure of many panels a page at a time', async () => {
  Element.prototype.scrollIntoView = vi.fn()
  const w = grid(140)
  const titles = () => w.findAll('h3').map((h) => h.text())
  expect(titles()).toHaveLength(12)
  expect(w.text()).toContain('Panels 1 to 12 of 140, part 1 of 12')
  expect(w.text()).toContain('SVG of the figure, part 1 of 12')
  await w.find('nav button:last-of-type').trigger('click')
  expect(titles()[0]).toBe('panel 13')
  // Filters that leave fewer panels lead to a page that is there.
  await w.setProps({ figures: [panel(0), panel(1)] })
  expect(titles()).toEqual(['panel 1', 'panel 2'])
  expect(w.find('nav').exists()).toBe(false)
  w.unmount()
})
