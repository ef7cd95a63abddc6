import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { expect, it } from 'vitest'
import { parametersOf } from './parameters'

it('lists what a sweep can set', () => {
  const found = parametersOf(readFileSync(resolve(__dirname, '../../../../radio-profiles/decola-radio.yaml'), 'utf8'))
  expect(found).toContainEqual({ path: 'rate', value: '64 kbit/s' })
  expect(found).toContainEqual({ path: 'channel.alpha', value: '0.01' })
  expect(found.map((f) => f.path)).not.toContain('channel.source')
  expect(found.map((f) => f.path)).not.toContain('channel.model')
})

it('bears any text', () => {
  expect(parametersOf('a: [')).toEqual([])
  expect(parametersOf('')).toEqual([])
  expect(parametersOf('emulation: 3')).toEqual([])
  expect(parametersOf('emulation: {channel: {parts: [{loss: 0.1}]}}')).toEqual([
    { path: 'channel.parts[0].loss', value: '0.1' },
  ])
})
