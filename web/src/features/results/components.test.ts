import { create } from '@bufbuild/protobuf'
import { mount } from '@vue/test-utils'
import { describe, expect, it } from 'vitest'
import { readView } from './view'
import { summaryOf } from './fixture'
import {
  BreachSchema,
  GetAttemptResponseSchema,
  RequiredOutcome,
  RequirementSchema,
} from '@/gen/linktrial/v1/result_pb'
import { looks } from '@/lib/palette'
import RunConclusions from './RunConclusions.vue'
import AttemptFacts from './AttemptFacts.vue'
import { pretty } from './pretty'
import TableTab from './TableTab.vue'
import TreatmentLegend from './TreatmentLegend.vue'
import TrialsTab from './TrialsTab.vue'
import TrialSteps from './TrialSteps.vue'
import ViewBar from './ViewBar.vue'
import ZoomBar from './ZoomBar.vue'

const look = looks(['cubic', 'udt'])
const RouterLink = { props: ['to'], template: '<a :href="to.path"><slot /></a>' }
const TimeText = { template: '<time />' }
const global = { stubs: { RouterLink, TimeText } }
const run = summaryOf({
  id: 'a',
  missing: 'udt',
  attempts: [
    { iteration: 1, treatment: 0, kbps: 100 },
    { iteration: 2, treatment: 0, kbps: 0, reason: 'transfer-timeout' },
  ],
})
const tab = {
  view: readView({}),
  runs: [run],
  marks: new Map<string, string>(),
  looks: look,
  legend: [],
  caption: '',
  name: 'plan',
}

describe('the table', () => {
  it('has the values of what was run, and why the rest was not', () => {
    const rows = mount(TableTab, { props: tab, global }).findAll('tbody tr')
    expect(rows[0]!.text()).toBe('Place t1 · Radio r1 · 1 MiB')
    expect(rows[1]!.text()).toContain('100.00')
    expect(rows[1]!.text()).toContain('1/2')
    expect(rows[2]!.text()).toContain('no driver')
  })
  it('says which relay processes the flows of a treatment pass', () => {
    const relayed = summaryOf({ id: 'b' })
    relayed.treatments[0]!.via = 'split 1.0.0 at the relay'
    const names = mount(TableTab, { props: { ...tab, runs: [relayed] }, global }).findAll('td.name')
    expect(names[0]!.text()).toContain('passes split 1.0.0 at the relay')
    expect(names[1]!.text()).not.toContain('passes')
  })
  it('says of each requirement whether the run passes it, and why', () => {
    const judged = summaryOf({ id: 'c' })
    judged.requirements = [
      [RequiredOutcome.PASS, 'average 139 KB/s, 120 to 158 KB/s at 95 %, at least 100 KB/s required'],
      [RequiredOutcome.FAIL, 'failed 50 %, 24 to 76 % at 95 %, at most 5 % required'],
      [RequiredOutcome.UNDECIDED, 'average, at least 1 KB/s required; no valid trial'],
    ].map(([outcome, text]) =>
      create(RequirementSchema, {
        label: 'CUBIC',
        treatment: 'cubic',
        outcome: outcome as RequiredOutcome,
        text: text as string,
      }),
    )
    const w = mount(TableTab, { props: { ...tab, runs: [run, judged] }, global }).find('[aria-label="Requirements"]')
    expect(w.findAll('h3').map((h) => h.text())).toEqual(['Place t1 · Radio r1'])
    expect(w.findAll('li').map((l) => l.text().replace(/\s+/g, ' '))).toEqual([
      '✓ pass CUBIC: average 139 KB/s, 120 to 158 KB/s at 95 %, at least 100 KB/s required',
      '✕ fail CUBIC: failed 50 %, 24 to 76 % at 95 %, at most 5 % required',
      '? undecided CUBIC: average, at least 1 KB/s required; no valid trial',
    ])
    // What is hidden is required all the same; without requirements there is no list.
    const hidden = { ...tab, runs: [judged], view: { ...tab.view, hidden: ['cubic'] } }
    expect(mount(TableTab, { props: hidden, global }).findAll('[aria-label="Requirements"] li')).toHaveLength(3)
    expect(mount(TableTab, { props: tab, global }).find('[aria-label="Requirements"]').exists()).toBe(false)
  })
  it('shows the requirements of the first runs, and more on request', async () => {
    const many = Array.from({ length: 14 }, (_, i) => {
      const r = summaryOf({ id: `r${i}` })
      r.requirements = [create(RequirementSchema, { label: 'UDT', outcome: RequiredOutcome.PASS, text: 'x' })]
      return r
    })
    const w = mount(TableTab, { props: { ...tab, runs: many }, global })
    expect(w.findAll('[aria-label="Requirements"] li')).toHaveLength(12)
    await w.find('[aria-label="Requirements"] button').trigger('click')
    expect(w.findAll('[aria-label="Requirements"] li')).toHaveLength(14)
  })
  it('asks for the order by a column', async () => {
    const w = mount(TableTab, { props: tab, global })
    await w
      .findAll('th button')
      .find((b) => b.text().startsWith('Average'))!
      .trigger('click')
    expect(w.emitted('set')).toEqual([[{ sort: '-average' }]])
  })
  it('grows by pages, not by thousands of rows at once', () => {
    const many = Array.from({ length: 400 }, (_, i) => summaryOf({ id: `r${i}` }))
    expect(mount(TableTab, { props: { ...tab, runs: many }, global }).findAll('tbody tr:not(.first)')).toHaveLength(150)
  })
})

describe('conclusions', () => {
  const concluded = (id: string, conclusion: string) => Object.assign(summaryOf({ id }), { conclusion })
  it('are the words of the orchestrator, without a list where there is one run', () => {
    const w = mount(RunConclusions, { props: { runs: [concluded('a', 'B leads A.')], marks: tab.marks } })
    expect(w.find('p').text()).toBe('B leads A.')
    expect(w.find('li').exists()).toBe(false)
  })
  it('name their runs where there are several, the first three at once', async () => {
    const runs = ['a', 'b', 'c', 'd'].map((id) => concluded(id, `${id} leads.`))
    const w = mount(RunConclusions, { props: { runs: [...runs, summaryOf({ id: 'e' })], marks: tab.marks } })
    expect(w.findAll('li')).toHaveLength(3)
    expect(w.find('li').text()).toBe('Place t1 · Radio r1 · 1 MiB: a leads.')
    await w.find('button').trigger('click')
    expect(w.findAll('li')).toHaveLength(4)
  })
  it('have what to know before pairs are read below them', () => {
    const noted = Object.assign(concluded('a', 'B leads A.'), { notes: ['Treatments differ.', 'Throughput fell.'] })
    const w = mount(RunConclusions, { props: { runs: [noted], marks: tab.marks } })
    expect(w.findAll('p').map((p) => p.text())).toEqual(['B leads A.', 'Treatments differ.', 'Throughput fell.'])
    const drifted = Object.assign(summaryOf({ id: 'b' }), { notes: ['Throughput rose.'] })
    const items = mount(RunConclusions, { props: { runs: [noted, drifted], marks: tab.marks } }).findAll('li')
    expect(items.map((li) => li.findAll('p').map((p) => p.text()))).toEqual([noted.notes, drifted.notes])
    const alone = mount(RunConclusions, { props: { runs: [drifted], marks: tab.marks } })
    expect(alone.findAll('p').map((p) => p.text())).toEqual(['Throughput rose.'])
  })
  it('are not there where nothing is compared', () => {
    expect(
      mount(RunConclusions, { props: { runs: [run], marks: tab.marks } })
        .find('section')
        .exists(),
    ).toBe(false)
  })
})

it('trials without a value are found and lead to their attempt', async () => {
  const w = mount(TrialsTab, { props: { ...tab, view: readView({ verdict: 'other' }) }, global })
  expect(w.findAll('tbody tr')).toHaveLength(1)
  expect(w.text()).toContain('transfer-timeout')
  expect(w.find('tbody a').attributes('href')).toBe('/results/attempt/a/1')
})

it('a legend hides a treatment, or all others', async () => {
  const items = ['cubic', 'udt'].map((name) => ({ name, label: name, look: look.get(name)! }))
  const w = mount(TreatmentLegend, { props: { items, hidden: ['udt'] } })
  expect(w.findAll('button').map((b) => b.attributes('aria-pressed'))).toEqual(['true', 'false'])
  await w.findAll('button')[0]!.trigger('click')
  await w.findAll('button')[1]!.trigger('click', { shiftKey: true })
  expect([w.emitted('toggle'), w.emitted('only')]).toEqual([[['cubic']], [['udt']]])
})

describe('the view bar', () => {
  const runs = [summaryOf({ id: 'a', setting: '1 %' }), summaryOf({ id: 'b', radio: 'r2', setting: '2 %' })]
  const props = {
    view: readView({ setting: 'loss=1 %' }),
    runs,
    sweeps: true,
    treatments: [],
    to: () => ({ path: '/results' }),
  }
  it('offers what the runs differ in, and nothing else', () => {
    const labels = mount(ViewBar, { props, global })
      .findAll('label.tool')
      .map((l) => l.find('span').text())
    expect(labels).toEqual(['Radio', 'loss', 'One panel for each', 'Same scale everywhere'])
  })
  it('sets and takes back a setting', async () => {
    const w = mount(ViewBar, { props, global })
    const select = w.findAll('select')[1]!
    expect((select.element as HTMLSelectElement).value).toBe('1 %')
    await select.setValue('2 %')
    await select.setValue('')
    expect(w.emitted('set')).toEqual([[{ settings: ['loss=2 %'], page: 0 }], [{ settings: [], page: 0 }]])
  })
})

describe('the zoom bar', () => {
  const zooms = async (from: number, to: number, press: string) => {
    const w = mount(ZoomBar, { props: { end: 10, from, to } })
    await w
      .findAll('button')
      .find((b) => b.text() === press)!
      .trigger('click')
    return w.emitted('zoom')?.[0]
  }
  it.each([
    [2, 4, 'Closer', [2.5, 3.5]],
    [2, 4, 'Wider', [1, 5]],
    [8, 10, 'Later', [8, 10]],
    [0.5, 2.5, 'Earlier', [0, 2]],
    [2, 4, 'Whole', [0, 10]],
  ] as const)('from %d to %d, %s', async (from, to, press, wanted) =>
    expect(await zooms(from, to, press)).toEqual([...wanted]),
  )
})

describe('an attempt', () => {
  const attempt = (received: string) =>
    create(GetAttemptResponseSchema, {
      run: { id: 'a', sizeBytes: 1024n },
      attempt: 1,
      trial: {
        trial: 1,
        iteration: 1,
        treatment: 'udt',
        attempts: [{ attempt: 1, verdict: 'succeeded', throughputBytesPerSecond: 1024, elapsedSeconds: 1 }],
      },
      flows: [{ sizeBytes: 1024n, digest: 'aa', receivedDigest: received }],
      treatmentJson: '{"protocol":"udt"}',
    })
  it.each([
    ['aa', 'what arrived is what was sent'],
    ['bb', 'what arrived is not what was sent'],
    ['', 'the server has not said what arrived'],
  ])('of digest aa, received %s: %s', (received, words) =>
    expect(mount(AttemptFacts, { props: { attempt: attempt(received) }, global }).text()).toContain(words),
  )
  it('names what drivers did wrong, and where', () => {
    const wrong = attempt('aa')
    expect(mount(AttemptFacts, { props: { attempt: wrong }, global }).text()).not.toContain('Breaches')
    wrong.breaches.push(
      create(BreachSchema, { message: 'did not exit', treatment: 'udt', node: 'client', ofAttempt: true }),
      create(BreachSchema, { message: 'left behind: sleep', treatment: 'udt', node: 'server' }),
    )
    const items = mount(AttemptFacts, { props: { attempt: wrong }, global }).findAll('li')
    expect(items.map((x) => [x.text().includes('of no one attempt'), x.text().replace(/ driver of.*/s, '')])).toEqual([
      [false, 'did not exit'],
      [true, 'left behind: sleep'],
    ])
  })
  it('has the trials before and after it, and those of its iteration', () => {
    const both = summaryOf({
      id: 'a',
      attempts: [
        [1, 0],
        [1, 1],
        [2, 0],
      ].map(([iteration, treatment]) => ({ iteration: iteration!, treatment: treatment!, kbps: 9 })),
    })
    const links = mount(TrialSteps, { props: { run: both, attempt: attempt('aa'), panels: {} }, global }).findAll('a')
    expect(links.map((l) => [l.attributes('href')!.split('/').at(-1), l.text().replace(/\s+/g, ' ')])).toEqual([
      ['0', '← Trial 0'],
      ['2', 'Trial 2 →'],
      ['0', '● CUBIC'],
      ['1', '■ UDT'],
    ])
  })
})

it.each([
  ['{"a":[1,2,3,4,5,6,7,8,9,10]}', '{\n  "a": "10 values: 1, 2, 3, 4, 5, 6 …"\n}'],
  ['not json', 'not json'],
  ['', ''],
])('shows the document %s', (json, text) => expect(pretty(json)).toBe(text))
