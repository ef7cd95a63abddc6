// Help in the text of a plan: completion of keys and values, and what a key means.
import { afterAll, beforeAll, expect, test } from 'vitest'
import { clean, shotBoth, type Station, station, troubles } from './harness'

let s: Station
beforeAll(async () => {
  s = await station('language')
})
afterAll(() => s?.stop())

test('the text of a plan completes keys and values, and says what a key means', async () => {
  const page = await s.open('/plans/quickstart')
  const text = page.locator('.cm-content')
  // Once the plan is checked and the form has its help, nothing moves under the pointer.
  await page.getByText('quickstart: 1 run').waitFor()
  await page.getByText('Passes over all treatments.').waitFor()
  await text.getByText('iterations', { exact: true }).hover()
  await page.locator('.cm-tooltip-hover').getByText('Passes over all treatments.').waitFor()
  await clean(page)
  await shotBoth(page, 'plan-hover')

  await text.click()
  await page.keyboard.press('Control+End')
  await page.keyboard.type('\n')
  await page.keyboard.press('Control+Space')
  const list = page.getByRole('listbox')
  await list.getByRole('option', { name: /^control_share/ }).waitFor()
  expect(await list.getByRole('option', { name: /^seed/ }).count()).toBe(0)
  await page.keyboard.type('capt')
  await page.locator('.cm-completionInfo').getByText("Keep a log of every trial's packets.").waitFor()
  await clean(page)
  await shotBoth(page, 'plan-completion')
  await page.keyboard.press('Enter')
  // The key's values follow.
  await list.getByRole('option', { name: /^true/ }).click()
  await expect.poll(() => text.innerText()).toContain('capture: true')
  await page.keyboard.press('Enter')
  await page.keyboard.type('radio: [prc-1')
  await list.getByRole('option', { name: /^prc-117g-anw2c/ }).waitFor()
  await page.keyboard.press('Escape')
  expect(await list.count()).toBe(0)
  expect(troubles).toEqual([])
})
