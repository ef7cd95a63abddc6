// Map and radio profiles: move a station by keyboard and by pointer, save it as
// a topology, and run a plan's check against it.
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { clean, shot, shotBoth, sizes, station, type Station, troubles } from './harness'

let s: Station
beforeAll(async () => {
  s = await station('map')
})
afterAll(() => s.stop())

test('a moved station becomes a topology that plans can name', async () => {
  const page = await s.open('/map?topology=vip-lot')
  const before = page.getByText('95 m (310 ft)')
  await before.waitFor()
  await clean(page)
  await shotBoth(page, 'map')

  const client = page.getByRole('button', { name: /^vip-lot, client/ })
  await client.focus()
  for (let i = 0; i < 3; i++) await page.keyboard.press('Shift+ArrowRight')
  await page.getByText(/^12[45] m/).waitFor() // 94.5 m and 30 m more
  const box = (await client.locator('circle').first().boundingBox())!
  await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2)
  await page.mouse.down()
  await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2 + 60, { steps: 4 })
  await page.mouse.up()
  await page.getByText(/^12[45] m/).waitFor({ state: 'detached' })

  await page.getByRole('button', { name: 'Save as …' }).click()
  await page.getByRole('textbox', { name: 'Name' }).fill('vip-lot-east')
  await page.getByRole('button', { name: 'Save', exact: true }).click()
  await page.getByText('Topology vip-lot-east is saved').waitFor()
  await expect.poll(() => new URL(page.url()).searchParams.get('topology')).toBe('vip-lot-east')

  const file = join(mkdtempSync(join(tmpdir(), 'map-')), 'plan.yaml')
  writeFileSync(
    file,
    'name: there\nradio: prc-117g-anw2c\ntopology: vip-lot-east\nsize: 16 KiB\ntreatments:\n  - {name: tcp, protocol: tcp, options: {congestion: cubic}}\niterations: 1\norder: fixed\nseed: 1\nlimits: {connect: 10s, transfer: 60s, attempts: 1}\n',
  )
  const url = s.url
  const res = await fetch(`${url}/linktrial.v1.OperatorService/CheckPlan`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ file, text: Buffer.from((await import('node:fs')).readFileSync(file)).toString('base64') }),
  })
  expect(((await res.json()) as { problems?: unknown[] }).problems ?? []).toEqual([])

  await page.getByRole('button', { name: 'Delete' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
  await expect.poll(() => new URL(page.url()).searchParams.get('topology')).toBeNull()
  expect(troubles).toEqual([])
})

test('every length stands at its own link', async () => {
  // Two links of one length would hide a swap: at Flag Pole they are 194 m and 205 m.
  for (const width of [1366, 390]) {
    const page = await s.open('/map?topology=flag-pole')
    await page.setViewportSize({ width, height: 844 })
    await page.waitForTimeout(250)
    await page.locator('svg .length').nth(1).waitFor()
    const links = await page.evaluate(() => {
      const middle = (e: Element) => {
        const b = e.getBoundingClientRect()
        return { x: b.x + b.width / 2, y: b.y + b.height / 2 }
      }
      const groups = [...document.querySelectorAll('svg g:has(> .length)')]
      const lines = groups.map((g) => middle(g.querySelector('line')!))
      return groups.map((g) => {
        const at = middle(g.querySelector('.length')!)
        const far = lines.map((l) => Math.hypot(l.x - at.x, l.y - at.y))
        const text = g.querySelector('.length')! as SVGTextElement
        return { link: text.dataset.link, text: text.textContent!.trim(), nearest: far.indexOf(Math.min(...far)) }
      })
    })
    expect(links.map((l) => l.nearest)).toEqual([0, 1])
    const of = (a: string, b: string) => links.find((l) => l.link?.includes(a) && l.link.includes(b))?.text
    expect(of('client', 'relay')).toBe('194 m (635 ft)')
    expect(of('relay', 'server')).toBe('205 m (673 ft)')
    await page.close()
  }
})

const ownRadio = `name: own-hf
title: An HF radio of our own
manufacturer: somebody
model: one
waveform: none
figures:
  - {name: rate, value: 9600 bit/s, source: measured}
emulation:
  medium: {value: half-duplex, source: measured}
  rate: {value: 9600 bit/s, source: measured}
  processing_delay: {value: 20ms, source: measured}
  mtu: {value: 1500 B, source: measured}
  queue: {bytes: 64 KiB, source: measured}
  channel: {model: perfect, source: measured}
`

test('a radio profile is added from a file or pasted, and deleted', async () => {
  const page = await s.open('/profiles')
  await page.getByRole('button', { name: 'Add …' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByRole('button', { name: 'Add' }).click()
  await dialog.getByText('Choose a file, or paste').waitFor()
  await dialog.getByLabel('File').setInputFiles({
    name: 'own.yaml',
    mimeType: 'text/yaml',
    buffer: Buffer.from(ownRadio.replace('half-duplex', 'half')),
  })
  await expect.poll(() => dialog.getByLabel('Text').inputValue()).toContain('name: own-hf')
  await dialog.getByRole('button', { name: 'Add' }).click()
  await dialog.getByText(/own-hf\.yaml:9:\d+/).waitFor()
  await clean(page)
  for (const [name, width] of [
    ['laptop', 1366],
    ['tablet', 768],
    ['phone', 390],
  ] as const) {
    await page.setViewportSize({ width, height: 768 })
    await shot(page, `profiles-add-${name}`)
  }
  await page.setViewportSize(sizes.laptop)
  await dialog.getByLabel('Text').fill(ownRadio)
  await dialog.getByRole('button', { name: 'Add' }).click()
  await page.getByText('Radio own-hf is added').waitFor()
  await page.getByRole('heading', { name: 'An HF radio of our own' }).waitFor()
  await clean(page)
  for (const [name, width] of [
    ['laptop', 1366],
    ['tablet', 768],
    ['phone', 390],
  ] as const) {
    await page.setViewportSize({ width, height: 768 })
    await shot(page, `profiles-own-${name}`)
  }
  await page.setViewportSize(sizes.laptop)
  await page.getByRole('button', { name: 'Delete' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
  await page.getByText('Radio own-hf is deleted.').waitFor()
  expect(await page.getByRole('link', { name: /An HF radio of our own/ }).count()).toBe(0)
})

test('a radio shows its parameters with their sources', async () => {
  const page = await s.open('/profiles?radio=prc-117g-anw2c')
  await page.getByRole('heading', { name: 'AN/PRC-117G, ANW2C' }).waitFor()
  await page.getByText('402.5 MHz').waitFor()
  await clean(page)
  await shotBoth(page, 'profiles')
  await page.getByRole('searchbox', { name: 'Find a radio' }).fill('stanag')
  await page.getByRole('link', { name: /STANAG/ }).click()
  await page.getByText(/selective repeat/).waitFor()
  await page.getByText('The file, with the source of every emulated parameter').click()
  await page.getByText('name: hf-stanag-5066').waitFor()
  expect(new URL(page.url()).searchParams.get('radio')).toBe('hf-stanag-5066')
  expect(troubles).toEqual([])
})
