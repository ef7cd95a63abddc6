import { expect, it } from 'vitest'
import { about, keysAt, schemaAt, schemaOf, wordsAt, type Language, type Schema } from './language'
import type { Step } from './position'

const known = (what: string): Schema => ({ type: ['string', 'number', 'boolean'], 'x-names': what })
const schema: Schema = {
  required: ['seed'],
  properties: {
    order: {
      enum: ['fixed', 'random'],
      default: 'fixed',
      description: 'Order of the `treatments`.',
      examples: ['random'],
    },
    radio: { anyOf: [known('radio'), { type: 'array', items: known('radio') }] },
    capture: { type: 'boolean', default: false },
    seed: { type: 'integer', 'x-value': 'whole number' },
    treatments: { type: 'array', items: { $ref: '#/$defs/treatments' }, examples: [[{ name: 'a', protocol: 'tcp' }]] },
    mixes: { type: 'array', items: { properties: { treatment: known('treatment or radio') } } },
    exclude: { type: 'array', items: { additionalProperties: true } },
    sizes: { additionalProperties: { 'x-value': 'size' } },
  },
  additionalProperties: false,
  $defs: {
    treatments: {
      required: ['name'],
      properties: { protocol: known('driver'), name: {}, options: { $ref: '#/$defs/options', 'x-unset': 'defaults' } },
    },
    options: { properties: {}, additionalProperties: true },
  },
}
const language: Language = {
  schema,
  names: (what) => ({ radio: [{ name: 'prc', detail: 'PRC' }], driver: [{ name: 'tcp' }] })[what] ?? [],
  options: (driver) =>
    driver === 'tcp'
      ? [
          { name: 'mss', type: 'size', min: 88, max: 1024, help: 'Segment.' },
          { name: 'congestion', type: 'string', choices: ['cubic', 'reno'], default: 'cubic', help: 'Control.' },
          { name: 'nodelay', type: 'bool', help: 'No delay.' },
        ]
      : undefined,
}
const way = (...keys: (string | number)[]): Step[] => keys.map((key) => ({ key, beside: { protocol: 'tcp' } }))
const words = (...keys: (string | number)[]) =>
  wordsAt(language, way(...keys), { treatments: ['a'], mixes: ['m'], groups: ['g'] }).map((w) =>
    w.detail ? `${w.name} ${w.detail}` : w.name,
  )

it('has the keys of a mapping, required ones first', () => {
  expect(keysAt(language, []).map((k) => k.name)).toEqual([
    'seed',
    'order',
    'radio',
    'capture',
    'treatments',
    'mixes',
    'exclude',
    'sizes',
  ])
  expect(keysAt(language, way('treatments', 3)).map((k) => [k.name, k.required])).toEqual([
    ['name', true],
    ['protocol', false],
    ['options', false],
  ])
  for (const nowhere of [way('order'), way('nothing'), way('exclude', 0), way('treatments')])
    expect(keysAt(language, nowhere)).toEqual([])
})

it('has the words of a value', () => {
  expect(words('order')).toEqual(['fixed default', 'random'])
  expect(words('capture')).toEqual(['true', 'false default'])
  expect(words('radio')).toEqual(['prc PRC'])
  expect(words('radio', 1)).toEqual(['prc PRC'])
  expect(words('treatments', 0, 'protocol')).toEqual(['tcp'])
  expect(words('mixes', 0, 'treatment')).toEqual(['a', 'm', 'prc PRC'])
  expect(words('seed')).toEqual([])
  expect(words('exclude', 0, 'size')).toEqual([])
})

it('has the options of the driver beside them', () => {
  const options = way('treatments', 0, 'options')
  expect(keysAt(language, options).map((k) => [k.name, k.schema['x-value']])).toEqual([
    ['mss', 'a size such as 64 KiB, 88 B to 1 KiB'],
    ['congestion', 'cubic, reno'],
    ['nodelay', 'true or false'],
  ])
  expect(words('treatments', 0, 'options', 'congestion')).toEqual(['cubic default', 'reno'])
  expect(words('treatments', 0, 'options', 'nodelay')).toEqual(['true', 'false'])
  expect(keysAt(language, [...way('treatments', 0), { key: 'options', beside: { protocol: 'x' } }])).toEqual([])
})

it('tells what a key means', () => {
  const [seed, order] = keysAt(language, [])
  expect(about(seed!)).toEqual([
    { label: 'Value', text: 'whole number' },
    { label: 'Without it', text: 'the plan is refused: the key is required' },
  ])
  expect(about(order!)).toEqual([
    { label: '', text: 'Order of the `treatments`.' },
    { label: 'Default', text: 'fixed' },
    { label: 'Example', text: '`order: random`' },
  ])
  const treatments = keysAt(language, []).find((k) => k.name === 'treatments')!
  expect(about(treatments)).toEqual([{ label: 'Example', text: '`treatments: [{name: a, protocol: tcp}]`' }])
  expect(schemaOf(language, 'treatments[2].options')?.['x-unset']).toBe('defaults')
  expect(schemaAt(language, way('sizes', 'vip-lot'))?.['x-value']).toBe('size')
  expect([schemaOf(language, 'no.such[1]'), schemaOf(undefined, 'order')]).toEqual([undefined, undefined])
})
