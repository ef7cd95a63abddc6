import { expect, it } from 'vitest'
import {
  added,
  limitSet,
  probesOf,
  readingAdded,
  readingRemoved,
  removed,
  renamed,
  ruleAdded,
  ruleKinds,
  ruleRemoved,
  validOf,
  wayEdits,
  wayOf,
  type Edit,
} from './conditions'
import { edit, readText } from './text'
import { plain } from './values'

const apply = (text: string, edits: Edit[]) => edits.reduce((t, [path, value]) => edit(t, path, value), text)
const valid = (text: string) => {
  const p = readText(text)
  return validOf(p, plain(p.value).valid)!
}

const probed = `name: a # the first
treatments:
  - {name: voice, protocol: probe} # a call
# both ways
probes:
  - {treatment: voice, alone: 60s} # alone, too
  - treatment: voice
    from: server # back
    beside: false
    alone: 5s
seed: 1
`

it('reads probes as the text has them', () => {
  const p = readText(probed)
  expect(probesOf(p, plain(p.value).probes)).toEqual([
    { treatment: 'voice', from: '', to: '', alone: '60s', beside: '' },
    { treatment: 'voice', from: 'server', to: '', alone: '5s', beside: 'false' },
  ])
  expect(probesOf(p, undefined)).toEqual([])
  for (const other of [3, 'voice', [1], [{ treatment: { a: 1 } }]]) expect(probesOf(p, other)).toBeUndefined()
})

it('edits probes and leaves comments as they are', () => {
  expect(apply(probed, wayEdits(1, { from: 'server', to: '' }, 'client'))).toBe(
    probed.replace('    from: server # back\n', ''),
  )
  expect(apply(probed, [[['probes', 0, 'alone'], '20s']])).toBe(probed.replace('60s', '20s'))
  expect(apply(probed, [removed(['probes'], 2, 1)])).toBe(probed.replace(/ {2}- treatment: voice\n.*\n.*\n.*5s\n/, ''))
  const more = apply(probed, [added(['probes'], 2, { treatment: 'voice-2' })])
  expect(more).toContain('- {treatment: voice, alone: 60s} # alone, too')
  expect(more).toContain('from: server # back')
  expect(more).toContain('treatment: voice-2')
  expect(apply('name: a\nseed: 1\nlimits: {pause: 1s}\n', [added(['probes'], 0, { treatment: 'voice' })])).toBe(
    'name: a\nprobes:\n  - {treatment: voice}\nseed: 1\nlimits: {pause: 1s}\n',
  )
  expect(apply('name: a\nprobes: [{treatment: v}]\nseed: 1\n', [removed(['probes'], 1, 0)])).toBe('name: a\nseed: 1\n')
})

it.each([
  ['', '', 'client'],
  ['client', '', 'client'],
  ['', 'server', 'client'],
  ['client', 'server', 'client'],
  ['server', '', 'server'],
  ['', 'client', 'server'],
  ['server', 'client', 'server'],
  ['relay', '', ''],
  ['', 'relay', ''],
  ['server', 'server', ''],
])('from %j to %j is from the %j', (from, to, way) => {
  expect(wayOf({ from, to })).toBe(way)
  for (const wanted of ['client', 'server']) {
    const text = apply(`probes: [{treatment: v, from: ${from || 'x'}, to: ${to || 'x'}}]\n`, [
      ...(from ? [] : [[['probes', 0, 'from'], undefined] as Edit]),
      ...(to ? [] : [[['probes', 0, 'to'], undefined] as Edit]),
      ...wayEdits(0, { from, to }, wanted),
    ])
    const p = readText(text)
    expect(wayOf(probesOf(p, plain(p.value).probes)![0]!), text).toBe(wanted)
  }
})

it('lets probes follow the name of their treatment', () => {
  const p = readText(probed)
  const view = probesOf(p, plain(p.value).probes)
  expect(renamed(view, 'voice', 'call')).toEqual([
    [['probes', 0, 'treatment'], 'call'],
    [['probes', 1, 'treatment'], 'call'],
  ])
  expect(renamed(view, 'tcp', 'call')).toEqual([])
  expect(renamed(undefined, 'voice', 'call')).toEqual([])
})

it('reads every rule of validity', () => {
  const v = valid(`valid:
  clock_step: 10 s
  interfering: 100 %
  telemetry: [{reading: snr, min: -100 dB, max: 200 dB}]
  battery: {min: 0 %}
  temperature: {min: -90 °C, max: 200 °C}
  position: 100 km
  host: 100 %
`)
  expect(v.rules.map((r) => [r.key, ...r.limits.map((l) => l.value)])).toEqual([
    ['clock_step', '10 s'],
    ['interfering', '100 %'],
    ['battery', '0 %'],
    ['temperature', '-90 °C', '200 °C'],
    ['position', '100 km'],
    ['host', '100 %'],
  ])
  expect(v.readings).toEqual([{ reading: 'snr', min: '-100 dB', max: '200 dB' }])
  expect(valid('name: a\n')).toEqual({ rules: [], readings: [] })
  for (const text of [
    'valid: 3',
    'valid: {battery: 3}',
    'valid: {host: [1]}',
    'valid: {telemetry: snr}',
    'valid: &v {host: 5 %}\nx: *v',
  ])
    expect(valid(text), text).toBeUndefined()
})

it('adds each rule, sets its limits and takes it away', () => {
  const bare = 'name: a\nlimits: {pause: 1s} # short\ncontrol: in-band\n'
  for (const key of Object.keys(ruleKinds)) {
    const one = apply(bare, [ruleAdded(valid(bare), key)])
    expect(one).toMatch(
      new RegExp(`^name: a\\nlimits: {pause: 1s} # short\\nvalid: {${key}: .*}\\ncontrol: in-band\\n$`),
    )
    const [rule] = valid(one).rules
    const limit = rule!.limits.find((l) => l.value)!
    expect(valid(apply(one, [limitSet(valid(one), rule!, limit, '7 x')])).rules[0]!.limits).toContainEqual({
      ...limit,
      value: '7 x',
    })
    expect(apply(one, [limitSet(valid(one), rule!, limit, '')])).toBe(bare)
    expect(apply(one, [ruleRemoved(valid(one), key)])).toBe(bare)
  }
})

it('keeps the other limits and rules, and their comments', () => {
  const text = `valid:
  temperature: {min: 0 °C, max: 85 °C} # the casing
  host: 5 % # busy
`
  const v = valid(text)
  const [temperature, host] = v.rules
  expect(apply(text, [limitSet(v, temperature!, temperature!.limits[0]!, '')])).toBe(text.replace('min: 0 °C, ', ''))
  expect(apply(text, [limitSet(v, host!, host!.limits[0]!, '2 %')])).toBe(text.replace('5 %', '2 %'))
  expect(apply(text, [ruleRemoved(v, 'host')])).toContain('temperature: {min: 0 °C, max: 85 °C} # the casing')
})

it('adds and removes readings', () => {
  const one = apply('name: a\n', [readingAdded(valid('name: a\n'), 'snr')])
  expect(one).toBe('name: a\nvalid: {telemetry: [{reading: snr, min: 0}]}\n')
  const two = apply(one, [readingAdded(valid(one), 'rate')])
  expect(valid(two).readings.map((r) => r.reading)).toEqual(['snr', 'rate'])
  expect(apply(two, [readingRemoved(valid(two), 1)])).toBe(one)
  expect(apply(one, [readingRemoved(valid(one), 0)])).toBe('name: a\n')
  const beside = apply('valid: {host: 5 %}\n', [readingAdded(valid('valid: {host: 5 %}\n'), 'snr')])
  expect(beside).toBe('valid: {host: 5 %, telemetry: [{reading: snr, min: 0}]}\n')
  expect(apply(beside, [readingRemoved(valid(beside), 0)])).toBe('valid: {host: 5 %}\n')
})
