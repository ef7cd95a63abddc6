import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { describe, expect, it } from 'vitest'
import { controlEdits, freeName, oneOrMany, splitValues, template, viewOf } from './form'
import { edit, readText } from './text'

const plan = (name: string) =>
  viewOf(readText(readFileSync(resolve(__dirname, `../../../../plans/${name}.yaml`), 'utf8')))

describe('viewOf', () => {
  it('reads a plain plan', () => {
    const v = plan('quickstart')
    expect(v).toMatchObject({
      name: 'quickstart',
      radios: ['prc-117g-anw2c'],
      topologies: ['vip-lot'],
      sizes: ['256 KiB'],
      iterations: '3',
      order: 'fixed',
      seed: '1',
      inText: [],
      grouped: false,
    })
    expect(v.treatments!.map((t) => t.name)).toEqual(['tcp-cubic', 'tcp-bbr', 'sctp', 'udt', 'haul', 'quic'])
    expect(v.treatments![0]).toMatchObject({
      protocol: 'tcp',
      options: { congestion: 'cubic' },
      line: 8,
      locked: false,
    })
    expect(v.limits).toEqual({ connect: '10s', transfer: '60s', attempts: '2', pause: '', wait: '', horizon: '' })
  })
  it('says what is in the text alone, and where', () => {
    const v = plan('decola-2006')
    expect(v.grouped).toBe(true)
    expect(v.inText.map((t) => t.key)).toEqual(['notes', 'groups', 'published'])
    expect(v.inText[1]).toMatchObject({ what: '3 groups: test-1, test-2, test-3' })
    expect(v.inText.every((t) => t.line > 1)).toBe(true)
    expect(plan('breedy-2015').sizes).toBeUndefined()
    expect(plan('breedy-2015').inText.map((t) => t.key)).toContain('size')
  })
  it('knows simple axes and leaves the others', () => {
    const v = viewOf(
      readText(
        'sweep:\n  - {name: loss, set: channel.loss, values: [0, 0.1]}\n  - {name: c, set: [a, b], values: [[1, 2]]}\n',
      ),
    )
    expect(v.sweep).toMatchObject([
      { name: 'loss', set: 'channel.loss', values: ['0', '0.1'], inText: false, line: 2 },
      { name: 'c', inText: true, line: 3 },
    ])
  })
  it('marks treatments that share their options', () => {
    const v = viewOf(
      readText(
        'treatments:\n  - {name: a, protocol: tcp, options: &o {mss: 1 KB}}\n  - {name: b, protocol: tcp, options: *o}\n  - {name: c, protocol: udt}\n',
      ),
    )
    expect(v.treatments!.map((t) => t.locked)).toEqual([true, true, false])
    expect(v.treatments![1]!.options).toEqual({ mss: '1 KB' })
  })
  it('has the share of control traffic, which goes with control over the radio', () => {
    const text = 'name: a\ncontrol: in-band\ncontrol_share: 25 %\n'
    const v = viewOf(readText(text))
    expect(v).toMatchObject({ control: 'in-band', controlShare: '25 %' })
    const turned = (control: string) =>
      controlEdits(control, v).reduce((t, [path, value]) => edit(t, path, value), text)
    expect(turned('in-band')).toBe(text)
    expect(turned('out-of-band')).toBe('name: a\ncontrol: out-of-band\n')
    expect(viewOf(readText('control: in-band\n')).controlShare).toBe('')
  })
  it('has every limit, and leaves shared ones to the text', () => {
    expect(viewOf(readText('limits: {wait: 30m, pause: 2s}\n')).limits).toMatchObject({ wait: '30m', pause: '2s' })
    const shared = viewOf(readText('limits: &l {wait: 30m}\ngroups: [{name: a, limits: *l}]\n'))
    expect(shared.limits).toBeUndefined()
    expect(shared.inText[0]).toMatchObject({ key: 'groups' })
    expect(shared.inText[1]).toMatchObject({ key: 'limits', line: 1 })
  })
  it('bears anything', () => {
    expect(viewOf(readText('')).treatments).toEqual([])
    expect(
      viewOf(readText('treatments: 3\nradio: {a: 1}\nlimits: [1]\nsweep: x\ngroups: 1')).treatments,
    ).toBeUndefined()
    expect(viewOf(readText('treatments: [1]')).treatments).toBeUndefined()
  })
})

it('writes lists as people do', () => {
  expect(oneOrMany([])).toBeUndefined()
  expect(oneOrMany(['a'])).toBe('a')
  expect(oneOrMany(['a', 'b'])).toEqual(['a', 'b'])
  expect(splitValues('0, 0.05,16 kbit/s,, 1e-4,007')).toEqual([0, 0.05, '16 kbit/s', '1e-4', '007'])
})

it('finds a free name', () => {
  expect(freeName('My Plan!', [])).toBe('my-plan')
  expect(freeName('a', ['a', 'a-2'])).toBe('a-3')
  expect(freeName('!!!', [])).toBe('plan')
})

it('starts plans from a text that reads', () => {
  const t = template('field-day')
  expect(readText(t).errors).toEqual([])
  expect(viewOf(readText(edit(t, ['seed'], 7))).seed).toBe('7')
})

it('shows a treatment’s code point and second radio, and says which probes and rules it cannot show', () => {
  const v = viewOf(
    readText(`treatments:
  - {name: voice, protocol: probe, dscp: EF}
  - {name: both, protocol: haul, second_radio: true}
probes: [&p {treatment: voice, alone: 20s}, *p]
valid: {clock_step: [100 ms]}
`),
  )
  expect(v.treatments!.map((t) => [t.dscp, t.secondRadio])).toEqual([
    ['EF', false],
    ['', true],
  ])
  expect([v.probes, v.valid]).toEqual([undefined, undefined])
  expect(v.inText.map((x) => x.what)).toEqual(['2 probes', 'rules of validity: clock_step'])
})

it('keeps what a plan requires when other keys are edited', () => {
  const text = `name: a
limits: {connect: 10s}
require:
  - {treatment: haul, average: {at_least: 100 KB/s}}   # the director's
  - {failures: {at_most: 30 %}}
capture: true
`
  const view = viewOf(readText(text))
  expect([view.required?.map((r) => r.line), view.inText]).toEqual([[4, 5], []])
  // Other keys go where plans have them, and the requirements stay as they were written.
  expect(edit(text, ['control'], 'in-band')).toBe(text.replace('capture', 'control: in-band\ncapture'))
  expect(edit(text, ['valid'], { host: '3 %' })).toBe(text.replace('require', 'valid: {host: 3 %}\nrequire'))
})
