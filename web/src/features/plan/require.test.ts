import { expect, it } from 'vitest'
import { viewOf } from './form'
import { renamedRequired, requiredOf } from './require'
import { edit, readText } from './text'

const text = `name: a
require:
  - {treatment: haul, average: {at_least: 100 KB/s}}   # the director's
  - {treatment: [haul, udt], radio: [mpu4, prc], topology: vip-lot, delivered: {by: 120s, at_least: 95 %}}
  - {failures: {at_most: 5 %}}
  - {group: files, where: {size: 64 KiB, loss: 0.1}, treatment: haul, ratio_to: {treatment: udt, at_least: 95 %, at_most: 105 %}}
  - {probe: voice, delay_p95: {at_most: 200ms}}
  - {probe: voice, treatment: haul, loss: {at_most: 2 %}}
  - {treatment: haul, beauty: {at_least: 1}}
`
const of = (t: string) => {
  const p = readText(t)
  return requiredOf(p, (p.value as Record<string, unknown>).require)
}

it('says requirements in words, and where they are', () => {
  expect(of(text)!.map((r) => [r.line, r.text])).toEqual([
    [3, 'haul: average at least 100 KB/s'],
    [4, 'haul, udt: delivered by 120s at least 95 % (mpu4, prc, vip-lot)'],
    [5, 'every treatment: failed at most 5 %'],
    [6, 'haul: throughput of that of udt at least 95 %, at most 105 % (files, size 64 KiB, loss 0.1)'],
    [7, 'voice: 95th percentile of the delay at most 200ms'],
    [8, 'voice beside haul: loss at most 2 %'],
    [9, '{"treatment":"haul","beauty":{"at_least":1}}'],
  ])
  expect(of('name: a\n')).toEqual([])
})

it('leaves to the text what is shared or no list of mappings', () => {
  for (const odd of ['require: 7\n', 'require: [7]\n', 'require: [&r {failures: {at_most: 5 %}}, *r]\n']) {
    expect(of(odd)).toBeUndefined()
    expect(viewOf(readText(odd)).inText.map((t) => t.key)).toEqual(['require'])
  }
})

it('follows a treatment that gets another name, and keeps the rest as it was written', () => {
  const renamed = (from: string, to: string) =>
    renamedRequired(of(text), from, to).reduce((t, [path, value]) => edit(t, path, value), text)
  expect(renamed('udt', 'udt-2')).toBe(
    text.replace('[haul, udt]', '[haul, udt-2]').replace('treatment: udt,', 'treatment: udt-2,'),
  )
  expect(renamed('voice', 'call')).toBe(text.replaceAll('probe: voice', 'probe: call'))
  expect(renamed('tcp', 'x')).toBe(text)
  expect(renamedRequired(undefined, 'haul', 'x')).toEqual([])
  expect(renamedRequired(of(text), 'haul', '')).toEqual([])
})
