// The frame of all pages: menu, keyboard, themes, and how fast it appears.
import { afterAll, beforeAll, expect, test } from 'vitest'
import { clean, scriptBytes, shotBoth, type Station, station, troubles } from './harness'

let s: Station
beforeAll(async () => {
  s = await station('frame')
})
afterAll(() => s.stop())

test('an orchestrator without runs says what to do first', async () => {
  const page = await s.open('/')
  await page.getByText('No run yet').waitFor()
  await clean(page)
  await shotBoth(page, 'overview-empty')
  for (const theme of ['dark', 'sun']) {
    const p = await s.open('/', { theme })
    await p.getByText('No run yet').waitFor()
    await clean(p)
  }
  expect(troubles).toEqual([])
})

test('an address of nowhere leads back', async () => {
  const page = await s.open('/no/such/page')
  await page.getByRole('link', { name: 'To the overview' }).click()
  await page.getByRole('heading', { name: 'Overview' }).waitFor()
})

test('the menu is reached by keyboard', async () => {
  const page = await s.open('/')
  await page.getByText('No run yet').waitFor()
  await page.keyboard.press('Tab')
  await expect.poll(() => page.evaluate(() => document.activeElement?.textContent)).toBe('To the content')
  await page.keyboard.press('Enter')
  await expect.poll(() => page.evaluate(() => document.activeElement?.id)).toBe('content')
})

test('without the orchestrator a page says so, and comes back', async () => {
  const page = await s.open('/')
  await page.getByText('No run yet').waitFor()
  await s.killServe()
  const words = page.getByText('The orchestrator does not answer').first()
  await words.waitFor()
  await s.serve()
  await words.waitFor({ state: 'detached' })
  await page.getByText('No run yet').waitFor()
  troubles.length = 0 // failed calls are logged by the browser itself
})

test('scripts of the first page stay small', async () => {
  const page = await s.open('/')
  await page.getByText('No run yet').waitFor()
  const paint = await page.evaluate(() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? -1)
  const bytes = await scriptBytes(page)
  console.log(
    `first page: ${(bytes / 1024).toFixed(0)} KB of compressed scripts, first contentful paint after ${paint.toFixed(0)} ms`,
  )
  expect(bytes).toBeGreaterThan(10_000)
  expect(bytes).toBeLessThan(500 * 1024)
})
