// Probes of a campaign that was really run: in a table of their own, apart from the
// transfers that they accompany.
import { afterAll, beforeAll, expect, test } from 'vitest'
import { clean, shotBoth, type Station, stored, troubles } from './harness'

const plan = `name: probes
title: Probes in a browser
radio: prc-117g-anw2c
topology: flag-pole
size: 64 KiB
treatments:
  - {name: tcp-cubic, label: TCP CUBIC, protocol: tcp, options: {congestion: cubic}}
  - {name: voice, label: Voice, protocol: probe, dscp: EF, options: {pattern: voip-g711, pause: 0s}}
probes:
  - {treatment: voice, alone: 1s}
  - {treatment: voice, from: server, alone: 1s}
iterations: 2
order: fixed
seed: 7
control: out-of-band
sample_interval: 100ms
`

let s: Station
let campaign: string

beforeAll(async () => {
  s = await stored('probes', ['--radio', 'prc-117g-anw2c', '--topology', 'flag-pole'], [plan])
  campaign = (JSON.parse(s.linktrial('results', '--format', 'json')) as { dataset: { campaign: string } }).dataset
    .campaign
}, 300_000)
afterAll(() => s?.stop())

test('probes have a table of their own, alone and beside a transfer, in each direction', async () => {
  const page = await s.open(`/results?ids=${campaign}&tab=table`)
  const probes = page.getByRole('group', { name: 'Probes, scrolls sideways' })
  const row = (name: RegExp) => probes.getByRole('row').filter({ has: page.getByRole('rowheader', { name }) })
  for (const name of [
    /^Voice, client → server, alone/,
    /^Voice, client → server beside TCP CUBIC/,
    /^Voice, server → client, alone/,
    /^Voice, server → client beside TCP CUBIC/,
  ]) {
    await row(name).waitFor()
    const cells = await row(name).getByRole('cell').allTextContents()
    expect(cells[0]).toBe('2')
    // Two hops take 3 ms and more, and a transfer of 64 KiB ends within a minute.
    const [least, mean, longest] = [1, 2, 6].map((i) => Number(cells[i]))
    expect(least).toBeGreaterThan(1)
    expect(mean).toBeGreaterThanOrEqual(least!)
    expect(longest).toBeGreaterThanOrEqual(mean!)
    expect(longest).toBeLessThan(60_000)
  }
  // The table of transfers has no row of a probe.
  const transfers = page.getByRole('group', { name: 'Results, scrolls sideways' })
  expect(await transfers.getByText('TCP CUBIC').count()).toBe(1)
  expect(await transfers.getByText('Voice').count()).toBe(0)
  await clean(page)
  await shotBoth(page, 'results-probes')
})

test("an attempt's page has what its probes measured", async () => {
  const page = await s.open(`/results/attempt/${campaign}-1/0`)
  for (const name of [/^Voice, client → server beside TCP CUBIC/, /^Voice, server → client beside TCP CUBIC/])
    await page.getByRole('rowheader', { name }).waitFor()
  await clean(page)
  await shotBoth(page, 'attempt-probes')
})

test('no page has thrown', () => expect(troubles).toEqual([]))
