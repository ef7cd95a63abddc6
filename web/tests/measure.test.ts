// A person presses Measure this link, sees what is measured, and stops it: what there is until
// then is on one sheet.
import { afterAll, beforeAll, expect, test } from 'vitest'
import { clean, shotBoth, type Station, station } from './harness'

let s: Station
beforeAll(async () => {
  s = await station('measure')
  await s.labUp('--radio', 'transports-link')
})
afterAll(() => s?.stop())

test('a link is measured, stopped, and shown on one sheet', async () => {
  const page = await s.open('/measure')
  await page.getByText('No link has been measured yet').waitFor()
  await page.getByText(/emulated radio, which can be any/).waitFor()
  await clean(page)
  await page.getByLabel('Radio').selectOption('transports-link')
  await page.getByText(/^At most /).waitFor()
  await page.getByRole('button', { name: 'Measure this link' }).click()
  await page.getByText(/^Measuring\./).waitFor()
  // The search for the capacity of the first way.
  await page.getByRole('row', { name: /capacity.*kbit\/s/ }).first().waitFor({ timeout: 60_000 })
  await clean(page)
  await shotBoth(page, 'measure-running')
  await page.getByRole('button', { name: 'Stop' }).click()
  await page.getByRole('button', { name: 'CSV' }).waitFor({ timeout: 30_000 })
  for (const use of ['voice', 'chat and positions', 'pictures', 'files'])
    await page.getByRole('rowheader', { name: use, exact: true }).waitFor()
  expect(await page.getByText(/not measured:/).count()).toBeGreaterThan(0)
  await clean(page)
  await shotBoth(page, 'measure')
})
