// @vitest-environment happy-dom
import { mount } from '@vue/test-utils'
import { expect, test, vi } from 'vitest'
import { useTheme } from '@/composables/theme'
import LiveChart from './LiveChart.vue'
import { LiveSeries } from './liveSeries'

const set: { option: { yAxis?: { axisLabel: { color: string } }[]; series?: unknown[] }; lazy: boolean }[] = []
vi.mock('@/lib/echarts', () => ({
  init: () => ({
    setOption: (option: (typeof set)[number]['option'], how?: { lazyUpdate?: boolean }) =>
      set.push({ option, lazy: how?.lazyUpdate ?? false }),
    getZr: () => ({ flush: () => {} }),
    resize: () => {},
    dispose: () => {},
  }),
}))

// The browser prints as soon as its event has been handled: neither a frame nor Vue's next tick comes between.
test('on paper the chart is drawn in the light theme before the event is over', async () => {
  useTheme().choice.value = 'dark'
  document.head.innerHTML = `<style>:root { --text: #111418 } :root[data-theme='dark'] { --text: #eef2f5 }</style>`
  const chart = mount(LiveChart, {
    props: { series: new LiveSeries(), labelOf: (t: string) => t },
    attachTo: document.body,
  })
  await vi.waitFor(() => expect(set.length).toBeGreaterThan(0))
  const colour = () => set.findLast((s) => s.option.yAxis)!.option.yAxis![0]!.axisLabel.color
  expect(colour()).toBe('#eef2f5')
  for (const [event, text] of [
    ['beforeprint', '#111418'],
    ['afterprint', '#eef2f5'],
  ] as const) {
    set.length = 0
    window.dispatchEvent(new Event(event))
    expect(colour()).toBe(text)
    expect(set.at(-1)).toMatchObject({ lazy: false, option: { series: [] } })
  }
  chart.unmount()
})
