import { describe, expect, it } from 'vitest'
import { shortLabels } from './headers'

describe('shortLabels', () => {
  it('leaves short labels as they are', () => expect(shortLabels(['TCP CUBIC', 'UDT'])).toEqual(['TCP CUBIC', 'UDT']))
  it('cuts long ones at the end', () =>
    expect(shortLabels(['TCP NewReno, initial window 3'])).toEqual(['TCP NewReno, init…']))
  it('keeps the ends where the beginnings are alike', () => {
    const out = shortLabels(['TCP CUBIC with buffers of 64 KiB', 'TCP CUBIC with buffers of 1 MiB', 'UDT'])
    expect(new Set(out).size).toBe(3)
    expect(out[0]).toBe('TCP CUBI…of 64 KiB')
    expect(Math.max(...out.map((o) => o.length))).toBeLessThanOrEqual(18)
  })
  it('cuts no word at the end, and every column in the same way', () =>
    expect(shortLabels([64, 112, 192].map((n) => `TCP CUBIC with a send buffer of ${n} KiB`))).toEqual([
      'TCP CUBI…of 64 KiB',
      'TCP CUBIC…112 KiB',
      'TCP CUBIC…192 KiB',
    ]))
  it('numbers what is alike at both ends', () => {
    const out = shortLabels(['protocol with option a and buffers', 'protocol with option b and buffers'])
    expect(new Set(out).size).toBe(2)
  })
})
