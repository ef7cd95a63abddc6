// A person presses Measure this link, sees what is measured, and stops it; measures it to its
// end; then changes a threshold, repeats it while moving, and has a comparison proposed.
import { afterAll, beforeAll, expect, test } from 'vitest'
import { clean, shotBoth, shotOf, type Station, station } from './harness'

let s: Station
beforeAll(async () => {
  s = await station('measure')
  await s.labUp('--radio', 'transports-link')
})
afterAll(() => s?.stop())

const uses = ['voice', 'chat and positions', 'chat while a file is sent', 'pictures', 'files']

test('a link is measured, stopped, and shown on one sheet', async () => {
  const page = await s.open('/measure')
  await page.getByText('No link has been measured yet').waitFor()
  await page.getByText(/emulated radio, which can be any/).waitFor()
  await clean(page)
  await page.getByLabel('Radio').selectOption('transports-link')
  await page.getByText(/^At most /).waitFor()
  await page.getByRole('button', { name: 'Measure this link' }).click()
  await page.getByText(/^Measuring\./).waitFor()
  // The search for the capacity of the first way; what follows is still to come.
  await page
    .getByRole('row', { name: /capacity.*kbit\/s/ })
    .first()
    .waitFor({ timeout: 60_000 })
  await page.getByText('not yet').first().waitFor()
  await clean(page)
  await shotBoth(page, 'measure-running')
  await page.getByRole('button', { name: 'Stop' }).click()
  await page.getByRole('button', { name: 'CSV' }).waitFor({ timeout: 30_000 })
  for (const use of uses) await page.getByRole('rowheader', { name: use, exact: true }).waitFor()
  expect(await page.getByText(/not measured:/).count()).toBeGreaterThan(0)
  await expect.poll(() => page.getByText('(running)').count()).toBe(0)
  await clean(page)
  await shotBoth(page, 'measure-stopped')
})

test('a link is measured to its end, judged anew, measured again, and compared', async () => {
  const page = await s.open('/measure')
  await page.getByLabel('Radio').selectOption('transports-link')
  await page.getByRole('button', { name: 'Measure this link' }).click()
  await page.getByText(/^Measuring\./).waitFor()
  await page.getByRole('button', { name: 'CSV' }).waitFor({ timeout: 170_000 })
  const row = (use: string) =>
    page.getByRole('row').filter({ has: page.getByRole('rowheader', { name: use, exact: true }) })
  for (const use of uses) await row(use).getByText('yes', { exact: true }).waitFor()
  await clean(page)
  await shotBoth(page, 'measure')
  await shotOf(
    page.getByRole('region', { name: 'What this link is good for' }).locator('table').first(),
    'hour-measure',
  )

  await page.getByText('Thresholds', { exact: true }).click()
  await page.getByLabel(/^Files: time of one/).fill('1')
  await row('files').getByText('no', { exact: true }).waitFor()
  await page.getByRole('button', { name: 'Back to the defaults' }).click()
  await row('files').getByText('yes', { exact: true }).waitFor()

  await page.getByRole('button', { name: 'Repeat while moving' }).click()
  const moving = page.getByRole('region', { name: 'Measured while moving' })
  await moving.getByText('yes', { exact: true }).first().waitFor({ timeout: 90_000 })
  await moving.getByRole('button', { name: 'Stop' }).click()
  await moving.getByRole('button', { name: 'Repeat while moving' }).waitFor({ timeout: 30_000 })

  await page.getByRole('button', { name: 'Compare protocols' }).click()
  const compare = page.getByRole('region', { name: 'Compare protocols' })
  await compare.getByLabel('Time that it may take').selectOption('40 minutes')
  await compare.getByText(/% with 80 % chance$/).waitFor()
  await clean(page)
  await shotBoth(page, 'measure-compare')
  await shotOf(compare, 'hour-compare')
  // One sheet of paper.
  const pdf = await page.pdf({ format: 'A4' })
  expect(pdf.toString('latin1').match(/\/Type\s*\/Page\b/g)).toHaveLength(1)

  await compare.getByRole('button', { name: 'Start', exact: true }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Start', exact: true }).click()
  await page.waitForURL('**/runs/*')
})
