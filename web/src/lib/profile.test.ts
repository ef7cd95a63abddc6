import { expect, it } from 'vitest'
import { channelText, emulationRows, parameterName, parameterValue } from './profile'

it.each([
  ['channel_bandwidth', 'channel bandwidth'],
  ['emulation.frame_overhead', 'frame overhead'],
  ['emulation.sites.zahl-road.rate', 'rate at zahl-road'],
])('names %s as %s', (name, text) => expect(parameterName(name)).toBe(text))

it('writes values with their unit', () => {
  const f = { name: 'rate', source: '' }
  expect(parameterValue({ ...f, value: 4110000.0000000005, unit: 'bit/s' })).toBe('4.11 Mbit/s')
  expect(parameterValue({ ...f, value: 402.5, unit: 'MHz' })).toBe('402.5 MHz')
  expect(parameterValue({ ...f, value: 4194.304, unit: 'ms' })).toBe('4194.304 ms')
  expect(parameterValue({ ...f, value: 0.1 + 0.2, unit: 's' })).toBe('0.3 s')
  expect(parameterValue({ ...f, value: 0, unit: 'dBi', unknown: true })).toBe('not known')
})

it('writes sizes exactly, in the unit that they were chosen in', () => {
  const size = (value: number) => parameterValue({ name: 'emulation.queue', source: '', value, unit: 'B' })
  expect([1048576, 65536, 1048577, 250000, 1500].map(size)).toEqual([
    '1 MiB',
    '64 KiB',
    '1048577 B',
    '250000 B',
    '1500 B',
  ])
  const rows = new Map(
    emulationRows({
      medium: 'full-duplex',
      rate_bits_per_second: 64000,
      processing_delay_ns: 0,
      mtu_bytes: 1500,
      queue: { bytes: 1048576, red: { min_bytes: 65536, max_bytes: 187500, max_probability: 0.1 } },
      channel: { model: 'perfect' },
    }),
  )
  expect(rows.get('MTU')).toBe('1500 B')
  expect(rows.get('Queue')).toBe('1 MiB; RED from 64 KiB to 187500 B, at most 0.1')
})

it('says how a channel loses', () => {
  expect(channelText({ model: 'markov', alpha: 0.001, beta: 0.01 })).toContain('9.09 % of the slots bad')
  expect(channelText({ model: 'combined', parts: [{ model: 'uniform', loss: 0.01 }, { model: 'perfect' }] })).toBe(
    'loses packets independently, 1.00 %; and loses nothing',
  )
})
