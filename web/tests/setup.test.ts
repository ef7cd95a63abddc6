// A laptop without a radio, which a person sets up in the browser: refused, tried, removed.
import { afterAll, beforeAll, expect, test } from 'vitest'
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { clean, shotBoth, type Station, station, until } from './harness'

let s: Station
beforeAll(async () => {
  s = await station('setup')
})
afterAll(async () => {
  await s.stop()
  spawnSync('ip', ['link', 'del', 'lt-setup0'])
})

test('an interface is pointed at, tried, and given back', async () => {
  const page = await s.open('/setup')
  await page.getByText('No laptop is connected').waitFor()
  await clean(page)
  spawnSync('ip', ['link', 'add', 'lt-setup0', 'type', 'veth', 'peer', 'name', 'lt-setup1'])
  s.start('agent', '--name', 'alpha', '--pin', '--state', join(s.data, 'alpha'))
  const card = page.getByRole('article', { name: 'alpha' })
  await card.waitFor()
  // The loopback leads to the orchestrator here, and nobody can point at it.
  expect(await card.getByRole('radio', { name: /^lo\b/ }).isDisabled()).toBe(true)
  await card.getByText('it is the loopback, which leads to this machine alone').waitFor()
  await card.getByRole('radio', { name: /^lt-setup0\b/ }).check()
  await until(
    'an address is proposed',
    async () => (await card.getByRole('textbox', { name: 'Address' }).inputValue()) === '10.77.0.1/24',
  )
  await clean(page)
  await shotBoth(page, 'setup')

  await card.getByRole('textbox', { name: 'MTU' }).fill('big')
  await card.getByRole('button', { name: 'Try it' }).click()
  await card.getByText('give a number of bytes such as 1500').waitFor()
  await card.getByRole('textbox', { name: 'MTU' }).fill('1400')
  await card.getByRole('button', { name: 'Try it' }).click()
  await card.getByText('lt-setup0 has the address 10.77.0.1/24, an MTU of 1400 bytes').waitFor()
  await page.getByText('Radios: client (alpha, 10.77.0.1). A link still needs a server.').waitFor()

  await page.setViewportSize({ width: 768, height: 1024 })
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(768)
  await card.getByRole('button', { name: 'Remove' }).click()
  await card.getByText('lt-setup0 is as it was before').waitFor()
  await page.getByText('No laptop has a radio yet').waitFor()
})
