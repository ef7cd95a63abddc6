// What radios tell: on the nodes' page, beside a trial, and in a preflight, with
// a radio that says nothing.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { clean, shot, shotBoth, type Station, station, troubles, until } from './harness'

const plan = `name: told
title: What the radios tell
radio: prc-117g-anw2c
topology: vip-lot
size: 512 KiB
treatments:
  - {name: tcp-cubic, label: TCP CUBIC, protocol: tcp, options: {congestion: cubic}}
iterations: 2
order: fixed
seed: 3
limits: {connect: 10s, transfer: 60s, attempts: 1}
control: out-of-band
sample_interval: 100ms
`

let s: Station
let folder: string
let run = ''
beforeAll(async () => {
  s = await station('telemetry')
  folder = mkdtempSync(join(tmpdir(), 'linktrial-telemetry-'))
  writeFileSync(join(folder, 'told.yaml'), plan)
  await s.labUp('--radio', 'prc-117g-anw2c', '--topology', 'vip-lot')
  s.linktrial('run', join(folder, 'told.yaml'))
  const r = await fetch(`${s.url}/linktrial.v1.OperatorService/ListRuns`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: '{}',
  })
  run = ((await r.json()) as { runs: { id: string }[] }).runs[0]!.id
}, 300_000)
afterAll(async () => {
  await s?.stop()
  if (folder) rmSync(folder, { recursive: true, force: true })
})

test('the nodes show what their radios told last', async () => {
  const page = await s.open('/fleet')
  const client = page.getByRole('article', { name: 'client' })
  await client.getByText('radio-http', { exact: true }).waitFor()
  await until(
    'values with their units',
    async () =>
      /snr\s+[\d.]+ dB/.test(await client.innerText()) && /in bytes\s+[\d,]+ B/.test(await client.innerText()),
  )
  expect(await client.innerText()).toMatch(/queue\s+\d+ B/)
  expect(await client.innerText()).toMatch(/\d+ (s|min)( \d+ s)? old/)
  await clean(page)
})

test('a radio shows how it is attached, what is read of it, and what it told last', async () => {
  const page = await s.open('/profiles?radio=prc-117g-anw2c')
  const nodes = page.getByRole('rowheader', { name: /^(client|relay|server) .*emulated$/ })
  await expect.poll(() => nodes.count(), { timeout: 170_000 }).toBe(3)
  await page
    .getByRole('row', { name: /radio-http\s+snr\s+[\d.]+ dB.*queue\s+\d+ B.* old$/ })
    .first()
    .waitFor()
  await page.getByText("by the radio's Ethernet interface").waitFor()
  await page.getByRole('row', { name: 'Forwarding off off' }).waitFor()
  await page.getByText(/^Source: breedy-2015, sections III.A and IV/).waitFor()
  const http = page.getByRole('region', { name: 'Telemetry radio-http' })
  await http.getByText('HTTP at the radio, port 8077, /telemetry.json; every 1 s at most, during trials too.').waitFor()
  await http.getByRole('row', { name: 'rate /rate_bits_per_second kbit/s, read × 0.001' }).waitFor()
  await page
    .getByRole('row', { name: /^in bytes 1\.3\.6\.1\.2\.1\.31\.1\.1\.1\.6\.1 B, only grows$/ })
    .first()
    .waitFor()
  await clean(page)
  await shotBoth(page, 'profiles-attached')
  await shot(page, 'radio-attached', false)
  await page.getByRole('link', { name: /TW-400/ }).click()
  await page.getByText('No connected node has this radio.').waitFor()
})

test('a trial shows what the radios told, on its own time axis', async () => {
  const page = await s.open(`/results/attempt/${run}/1`)
  for (const panel of ['Radio: snr', 'Radio: queue', 'Radio: rate'])
    await page.getByRole('checkbox', { name: panel, exact: true }).waitFor()
  await page.locator('[data-drawn]').first().waitFor()
  const label = await page.locator('[aria-label^="Time series of the attempt"]').first().getAttribute('aria-label')
  expect(label).toContain('Radio: snr in dB (client, relay, server)')
  // Read between trials alone, so its value covers the whole trial.
  expect(label).toContain('Radio: in bytes in B/s')
  await clean(page)
  await shotBoth(page, 'attempt-telemetry')
})

test('a radio that says nothing is told in one sentence, and the preflight says what to do', async () => {
  const keys = join(folder, 'keys')
  writeFileSync(keys, s.linktrial('signing', 'keys'))
  s.start(
    'agent',
    '--name',
    'field',
    '--role',
    'client',
    '--radio',
    'mpu4',
    '--radio-address',
    '127.0.0.1',
    '--device',
    'lo',
    '--radio-host',
    '127.0.0.1',
    '--trust',
    keys,
  )
  const page = await s.open('/fleet')
  const field = page.getByRole('article', { name: 'field' })
  await until('the silence is told', async () =>
    /nothing answers SNMP at 127\.0\.0\.1:161/.test(await field.innerText()),
  )
  expect(await field.innerText()).toContain('runs continue without it')
  await page.getByRole('button', { name: 'Start preflight' }).click()
  await page.getByText(/\d+ of \d+ checks passed/).waitFor()
  await until('the preflight has ended', async () => !(await page.getByRole('progressbar').isVisible()))
  await page.getByText('What to do: switch SNMP on in the radio', { exact: false }).first().waitFor()
  await page.getByText('field: telemetry').first().waitFor()
  await clean(page)
  await shotBoth(page, 'fleet-telemetry')
  const radio = await s.open('/profiles?radio=mpu4')
  await radio
    .getByRole('row', { name: /^field client.*nothing answers SNMP at 127\.0\.0\.1:161.*runs continue without it/ })
    .waitFor()
  expect(troubles).toEqual([])
})
