import { create } from '@bufbuild/protobuf'
import { timestampFromDate } from '@bufbuild/protobuf/wkt'
import { Code, ConnectError } from '@connectrpc/connect'
import { mount } from '@vue/test-utils'
import { beforeEach, describe, expect, it } from 'vitest'
import { nextTick } from 'vue'
import type { SheetView } from './sheet'
import type { Cell } from './cells'
import { JournalLineSchema, RunSchema, RunState } from '@/gen/linktrial/v1/operator_pb'
import JournalPanel from './JournalPanel.vue'
import LinkBanner from './LinkBanner.vue'
import RunMatrix from './RunMatrix.vue'
import RunPicker from './RunPicker.vue'
import { moment } from '@/lib/format'
import { outage } from '@/composables/contact'
import TabBar from '@/components/ui/TabBar.vue'

function matrix(iterations: number, more = {}) {
  const sheet: SheetView = {
    labels: new Map(),
    columns: [
      { name: 'a', label: 'A', missing: '' },
      { name: 'b', label: 'B', missing: '' },
      { name: 'c', label: 'C', missing: 'not built' },
    ],
    rows: Array.from({ length: iterations }, (_, i) => ({ iteration: i + 1, trials: [i * 2, i * 2 + 1, undefined] })),
    radioTitle: '',
    topologyTitle: '',
    settings: '',
    durations: new Map(),
    offsets: new Map(),
    probeTrials: new Set<number>(),
    inBand: false,
  }
  const cells = new Map<number, Cell>()
  for (let t = 0; t < iterations * 2; t++)
    cells.set(t, {
      kind: 'succeeded',
      glyph: '✓',
      text: `${t} KB/s`,
      brief: `${t}`,
      more: '',
      spoken: '',
      aside: 'succeeded',
    })
  return mount(RunMatrix, { props: { sheet, cells, title: 'x', ...more }, attachTo: document.body })
}

describe('RunMatrix', () => {
  it('says each field in words, and what is left out', async () => {
    const w = matrix(2)
    expect(w.find('[data-trial="3"] .words').text().replace(/\s+/g, ' ')).toBe('Iteration 2, B: 3 KB/s, succeeded')
    expect(w.text()).toContain('C is left out: not built')
    await w.find('[data-trial="3"]').trigger('click')
    expect(w.emitted('select')).toEqual([[3]])
    w.unmount()
  })
  it('is one stop for Tab, and the arrows go from field to field', async () => {
    const w = matrix(3)
    const stops = () => w.findAll('button[data-trial][tabindex="0"]').map((b) => b.attributes('data-trial'))
    expect(stops()).toEqual(['0'])
    ;(w.find('[data-trial="0"]').element as HTMLElement).focus()
    await w.find('[data-trial="0"]').trigger('keydown', { key: 'ArrowDown' })
    await w.find('[data-trial="2"]').trigger('keydown', { key: 'ArrowRight' })
    expect(document.activeElement?.getAttribute('data-trial')).toBe('3')
    // Not over the edge.
    await w.find('[data-trial="3"]').trigger('keydown', { key: 'ArrowRight' })
    expect(document.activeElement?.getAttribute('data-trial')).toBe('3')
    expect(stops()).toEqual(['3'])
    w.unmount()
  })
  it('shows many iterations page by page and follows the run', async () => {
    const w = matrix(250, { current: 430 })
    expect(w.text()).toContain('iterations 201 to 250 of 250')
    await w.findAll('.pages button')[0]!.trigger('click')
    expect(w.emitted('page')).toEqual([[100]])
    await w.setProps({ from: 0 })
    expect(w.text()).toContain('iterations 1 to 100 of 250')
    await w.findAll('.pages button').at(-1)!.trigger('click')
    expect(w.emitted('page')).toEqual([[100], [undefined]])
    w.unmount()
  })
  it('shows numbers alone in many columns, and says the whole', () => {
    const label = 'TCP CUBIC with buffers of 64 KiB'
    const columns = Array.from({ length: 12 }, (_, i) => ({ name: `t${i}`, label: `${label} ${i}`, missing: '' }))
    const cells = new Map<number, Cell>(
      Array.from({ length: 1200 }, (_, t) => [
        t,
        {
          kind: 'succeeded',
          glyph: '✓',
          text: '12.3 KB/s',
          brief: '12.3',
          more: '',
          spoken: 'succeeded, 12.3 KB/s',
          aside: '',
        },
      ]),
    )
    const rows = Array.from({ length: 100 }, (_, i) => ({
      iteration: i + 1,
      trials: columns.map((_, x) => i * 12 + x),
    }))
    const sheet = {
      labels: new Map(),
      columns,
      rows,
      radioTitle: '',
      topologyTitle: '',
      settings: '',
      durations: new Map(),
      offsets: new Map(),
      probeTrials: new Set<number>(),
      inBand: false,
    }
    const m = mount(RunMatrix, { props: { sheet, cells, title: 'x' }, attachTo: document.body })
    expect(m.findAll('tbody tr').length).toBe(100)
    const cell = m.find('[data-trial="13"]')
    expect(cell.text()).toBe('✓12.3')
    expect(cell.attributes('aria-label')).toBe(`Iteration 2, ${label} 1: succeeded, 12.3 KB/s`)
    const head = m.findAll('thead th')[2]!
    expect(head.attributes('title')).toBe(`${label} 1`)
    expect(head.find('[aria-hidden]').text().length).toBeLessThan(24)
    expect(head.find('.unseen').text()).toBe(`${label} 1`)
    m.unmount()
  })
})

const line = (seq: number, node: string, text: string, received?: Date) =>
  create(JournalLineSchema, {
    runId: 'r',
    node,
    seq: BigInt(seq),
    type: 'trial-end',
    text,
    at: timestampFromDate(new Date(1000)),
    received: received && timestampFromDate(received),
  })

describe('JournalPanel', () => {
  const lines = [
    line(1, 'client', 'one'),
    line(2, 'client', 'two', new Date(90_000)),
    line(1, 'server', 'three'),
    create(JournalLineSchema, { runId: 'other', node: 'x', seq: 1n, text: 'four' }),
  ]
  it('filters by run, node and words', async () => {
    const w = mount(JournalPanel, { props: { lines, find: '', node: '', run: 'r' } })
    expect(w.findAll('.line')).toHaveLength(3)
    await w.setProps({ node: 'server' })
    expect(w.findAll('.line')).toHaveLength(1)
    await w.setProps({ node: '', find: 'TWO' })
    expect(w.find('.line').text()).toContain('two')
    await w.setProps({ find: 'nothing' })
    expect(w.text()).toContain('No line matches.')
  })
  it('says when a line came late', () => {
    const w = mount(JournalPanel, { props: { lines, find: '', node: '', run: 'r' } })
    expect(w.findAll('.line').map((l) => l.text().includes('arrived'))).toEqual([false, true, false])
  })
  it('has a bounded number of lines in the page', async () => {
    const many = Array.from({ length: 500 }, (_, i) => line(i + 1, 'client', `line ${i}`))
    const w = mount(JournalPanel, { props: { lines: many, find: '', node: '', run: 'r' } })
    expect(w.findAll('.line')).toHaveLength(200)
    expect(w.findAll('.line').at(-1)!.text()).toContain('line 499')
    await w.find('.box .link').trigger('click')
    expect(w.findAll('.line')).toHaveLength(400)
  })
})

// A probe of an earlier test on a busy machine may have found that nobody answers.
beforeEach(() => (outage.value = undefined))

it('LinkBanner shows for how long there is no contact with the orchestrator and with nodes', () => {
  const now = Date.now()
  const w = mount(LinkBanner, {
    props: {
      link: { state: 'lost', since: now - 40_000, retryAt: now + 3000, error: new Error('x') },
      silent: [
        // The orchestrator's clock is an hour ahead of this machine's.
        {
          node: 'client',
          since: new Date(now + 3_525_000),
          local: now - 75_000,
          last: line(7, 'client', 'trial 3 (udt, iteration 1), attempt 1 starts'),
        },
        { node: 'relay', since: new Date(now - 8_000), local: now - 8_000 },
      ],
      over: false,
    },
  })
  expect(w.text()).toContain('No contact with the orchestrator for 40 s')
  const [, client, relay] = w.findAll('.banner').map((b) => b.text())
  expect(client).toContain(`No contact with client since ${moment(new Date(now + 3_525_000))}, 1 min 15 s.`)
  expect(client).toMatch(/Its last report, of .*UTC: Trial 3 \(udt, iteration 1\), attempt 1 starts\./)
  expect(relay).toContain('It has not reported anything of this run.')
  // Nobody knows that, so no banner may promise it.
  for (const t of [client, relay]) expect(t).toContain('Whether the run continues there is not known')
})

it('LinkBanner gives the reason where the orchestrator itself says that it cannot answer', () => {
  const reason = 'the database does not answer: the same call can succeed later'
  const at = (error: unknown) =>
    mount(LinkBanner, { props: { link: { state: 'lost', since: Date.now(), error }, silent: [], over: false } }).text()
  expect(at(new ConnectError(reason, Code.Unavailable))).toMatch(/No answer from the orchestrator.*database/)
  expect(at(new ConnectError('HTTP 503', Code.Unavailable))).toContain('linktrial serve')
  expect(at(new TypeError('Failed to fetch'))).toMatch(/No contact with the orchestrator.*linktrial serve/)
})

it('RunPicker has tabs for a few runs and a list for many', async () => {
  const runs = (n: number) =>
    Array.from({ length: n }, (_, i) =>
      create(RunSchema, {
        id: `r${i}`,
        radio: 'mpu4',
        topology: `place-${i}`,
        sizeBytes: 1024n,
        state: RunState.RUNNING,
        trials: 4,
      }),
    )
  const few = mount(RunPicker, { props: { runs: runs(2), chosen: 'r0' } })
  expect(few.findAll('[role=tab]').map((t) => t.text())).toEqual(['1. place-0▶ 0/4', '2. place-1▶ 0/4'])
  const swept = runs(2).map((r, i) => ({ ...r, topology: 'here', settings: `loss 0.${i}` }))
  const same = mount(RunPicker, { props: { runs: swept, chosen: 'r0' } })
  expect(same.findAll('[role=tab]').map((t) => t.text())).toEqual(['1. loss 0.0▶ 0/4', '2. loss 0.1▶ 0/4'])
  const many = mount(RunPicker, { props: { runs: runs(20), chosen: 'r0' } })
  expect(many.findAll('option')).toHaveLength(20)
  await many.find('select').setValue('r5')
  expect(many.emitted('choose')).toEqual([['r5']])
})

it('TabBar goes round with the arrow keys', async () => {
  const w = mount(TabBar, {
    props: {
      tabs: [
        { value: 'a', label: 'A' },
        { value: 'b', label: 'B' },
      ],
      modelValue: 'b',
      label: 'x',
      panel: 'p',
    },
  })
  await w.find('[role=tablist]').trigger('keydown', { key: 'ArrowRight' })
  await nextTick()
  expect(w.emitted('update:modelValue')).toEqual([['a']])
})
