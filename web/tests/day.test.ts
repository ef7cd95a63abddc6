// A whole trial day in the browser, as docs/guide.md tells it: a lab, a look at
// the nodes, a plan, its run as it happens, and the results as files.
import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { clean, shot, station, type Station, troubles } from './harness'

let s: Station
beforeAll(async () => {
  s = await station('day')
})
afterAll(() => s.stop())

test('from nothing to the table', async () => {
  const page = await s.open('/')
  await page.getByRole('link', { name: 'emulated lab' }).click()
  await page.getByRole('button', { name: 'Start the lab' }).click()
  await page.getByText('Emulated radios now').waitFor()
  await shot(page, 'day-lab')

  await page.getByRole('link', { name: 'Fleet' }).click()
  await page.getByText('3 of 3 nodes are connected.').waitFor()
  await page.getByRole('button', { name: 'Start preflight' }).click()
  await page.getByText('All checks passed: trials can start.').waitFor({ timeout: 170_000 })
  await shot(page, 'day-fleet')

  await page
    .getByRole('link', { name: 'Choose a plan' })
    .or(page.getByRole('link', { name: 'Plans' }))
    .first()
    .click()
  await page.getByRole('link', { name: 'quickstart', exact: true }).click()
  await page.locator('.cm-content').waitFor() // the list of plans has the same words
  await page
    .getByText(/18 trials/)
    .first()
    .waitFor()
  await shot(page, 'day-plan', false)
  await page
    .getByRole('button', { name: /^Start/ })
    .first()
    .click()
  await page.getByRole('dialog').getByRole('button', { name: 'Start', exact: true }).click()

  await page.waitForURL('**/runs/*')
  await page.getByRole('button', { name: 'Pause' }).waitFor()
  await page.locator('button[data-trial="5"].succeeded').waitFor({ timeout: 170_000 })
  await shot(page, 'day-run')
  await page.getByText('completed', { exact: false }).first().waitFor({ timeout: 170_000 })
  await clean(page)

  const campaign = new URL(page.url()).pathname.split('/').pop()!
  await page.goto(`${s.url}/results?ids=${campaign}`)
  await page.getByText('TCP CUBIC').first().waitFor()
  await page.locator('[data-drawn]').first().waitFor()
  await shot(page, 'day-figure')
  await page.getByRole('link', { name: 'Table', exact: true }).click()
  await page
    .getByRole('cell', { name: /TCP BBR/ })
    .first()
    .waitFor()
  await shot(page, 'day-table')

  // The file that the page saves is the one of the command line.
  await page.getByRole('button', { name: 'Download data' }).click()
  const [file] = await Promise.all([
    page.waitForEvent('download'),
    page.locator('#downloads').getByText(/LaTeX/).click(),
  ])
  expect(readFileSync(await file.path(), 'utf8')).toBe(s.linktrial('results', campaign, '--format', 'latex'))
  expect(troubles).toEqual([])
})
