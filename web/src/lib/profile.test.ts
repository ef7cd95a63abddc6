import { expect, it } from 'vitest'
import { channelText, figureName, figureValue } from './profile'

it.each([
  ['channel_bandwidth', 'channel bandwidth'],
  ['emulation.frame_overhead', 'frame overhead'],
  ['emulation.sites.zahl-road.rate', 'rate at zahl-road'],
])('names %s as %s', (name, text) => expect(figureName(name)).toBe(text))

it('writes values with their unit', () => {
  const f = { name: 'rate', source: '' }
  expect(figureValue({ ...f, value: 4110000.0000000005, unit: 'bit/s' })).toBe('4.11 Mbit/s')
  expect(figureValue({ ...f, value: 402.5, unit: 'MHz' })).toBe('402.5 MHz')
  expect(figureValue({ ...f, value: 0, unit: 'dBi', unknown: true })).toBe('not known')
})

it('says how a channel loses', () => {
  expect(channelText({ model: 'markov', alpha: 0.001, beta: 0.01 })).toContain('9.09 % of the slots bad')
  expect(channelText({ model: 'combined', parts: [{ model: 'uniform', loss: 0.01 }, { model: 'perfect' }] })).toBe(
    'loses packets independently, 1.00 %; and loses nothing',
  )
})
