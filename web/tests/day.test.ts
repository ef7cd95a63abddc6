// A whole trial day in the browser, as docs/guide.md tells it: a lab, a look at
// the nodes, a plan, its run as it happens, and the results as files.
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { clean, shot, station, type Station, troubles } from './harness'

let s: Station
beforeAll(async () => {
  s = await station('day')
})
afterAll(() => s.stop())

const guide = readFileSync(resolve(import.meta.dirname, '../../docs/guide.md'), 'utf8')
/** What the guide names of the pages: **Fleet, Identities**, *Start preflight*. */
const named = new Set(
  [...guide.matchAll(/(?<![*\w])\*{1,2}([A-Z][^*\n]*?)\*{1,2}(?!\*)/g)].flatMap((m) => m[1]!.split(', ')),
)
/** The browser's own, nodes with certificates (trust.test.ts), two campaigns (results.test.ts), rules (plan.test.ts). */
const elsewhere = ['Print', 'Revoke', 'Differences', 'Repeatedly', 'Add a laptop']
const met = new Set<string>()
async function meet(page: Page) {
  const texts = await page.evaluate(() =>
    [...document.querySelectorAll('a, button, h1, h2, h3, th, label, label > span, [role="tab"]')]
      .filter((e) => e.checkVisibility())
      .map((e) => (e.textContent ?? '').replace(/\s+/g, ' ').trim()),
  )
  for (const n of named) if (texts.some((t) => t === n || t.startsWith(`${n} `) || t.startsWith(`${n}of `))) met.add(n)
}

test('from nothing to the table', async () => {
  const page = await s.open('/')
  await page.getByRole('link', { name: 'emulated lab' }).waitFor()
  await meet(page)
  await page.getByRole('link', { name: 'emulated lab' }).click()
  await page.getByRole('button', { name: 'Start the lab' }).click()
  await page.getByText('Emulated radios now').waitFor()
  await shot(page, 'day-lab')
  await meet(page)

  await page.getByRole('link', { name: 'Fleet' }).click()
  await page.getByText('3 of 3 nodes are connected.').waitFor()
  await meet(page)
  await page.getByRole('button', { name: 'Start preflight' }).click()
  await page.getByText('All checks passed: trials can start.').waitFor({ timeout: 170_000 })
  // Of three nodes each has measured its links to the two others.
  await expect.poll(() => page.locator('td', { hasText: / ms · .* lost/ }).count(), { timeout: 3000 }).toBe(6)
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
  await meet(page)
  await page
    .getByRole('button', { name: /^Start/ })
    .first()
    .click()
  await page.getByRole('dialog').getByRole('button', { name: 'Start', exact: true }).click()

  await page.waitForURL('**/runs/*')
  await page.getByRole('button', { name: 'Pause' }).waitFor()
  await page.locator('button[data-trial="5"].succeeded').waitFor({ timeout: 170_000 })
  await shot(page, 'day-run')
  // The commands to a trial that waits, and to one that has ended.
  await page.getByRole('button', { name: 'Pause' }).click()
  await page.locator('button[data-trial]').last().click()
  await page.getByRole('button', { name: 'Skip', exact: true }).waitFor()
  await meet(page)
  await page.locator('button[data-trial="0"].succeeded').click()
  await page.getByRole('button', { name: 'Exclude …' }).click()
  await page.getByLabel('Reason').fill('a truck stood in the way')
  await meet(page)
  await page.getByRole('dialog').getByRole('button', { name: 'Exclude' }).click()
  await page.getByRole('button', { name: 'Include again' }).waitFor()
  await meet(page)
  await page.getByRole('button', { name: 'Include again' }).click()
  await page.getByRole('button', { name: 'Exclude …' }).first().waitFor()
  await page.getByRole('button', { name: 'Resume' }).click()
  await page.getByText('completed', { exact: false }).first().waitFor({ timeout: 170_000 })
  await clean(page)

  const campaign = new URL(page.url()).pathname.split('/').pop()!
  await page.goto(`${s.url}/results?ids=${campaign}`)
  await page.getByText('TCP CUBIC').first().waitFor()
  await page.locator('[data-drawn]').first().waitFor()
  await shot(page, 'day-figure')
  await meet(page)
  await page.getByRole('link', { name: 'Table', exact: true }).click()
  await page
    .getByRole('cell', { name: /TCP BBR/ })
    .first()
    .waitFor()
  await shot(page, 'day-table')
  await meet(page)

  // The file that the page saves is the one of the command line.
  await page.getByRole('button', { name: 'Download data' }).click()
  const [file] = await Promise.all([
    page.waitForEvent('download'),
    page.locator('.menu .list').getByText(/LaTeX/).click(),
  ])
  expect(readFileSync(await file.path(), 'utf8')).toBe(s.linktrial('results', campaign, '--format', 'latex'))
  for (const [path, words] of [
    ['/fleet/identities', 'Node identities'],
    ['/protocols/approvals', 'Accepted'],
    ['/map', 'Save as …'],
    ['/profiles?radio=prc-117g-anw2c', 'Attached now'],
    ['/account', 'Account'],
    ['/results', 'Choose a campaign'],
  ] as const) {
    await page.goto(s.url + path)
    await page.locator('main').getByText(words).first().waitFor()
    await meet(page)
  }
  expect([...named].filter((n) => !met.has(n) && !elsewhere.includes(n))).toEqual([])
  expect(troubles).toEqual([])
})

test("the guide's commands are there", () => {
  const commands = [...guide.matchAll(/(?:^ {4}|`)(?:sudo bin\/)?linktrial ((?:[a-z][a-z-]*(?=[ \n`]) ?)+)/gm)]
  expect(commands.length).toBeGreaterThan(20)
  for (const [, words] of commands) {
    const named = words!.trim()
    // "linktrial node revoke NAME" of "node revoke client": what follows is an argument.
    const usage = /^Usage:\n {2}linktrial ((?:[a-z][a-z-]* ?)+)(.*)/m.exec(s.linktrial(...named.split(' '), '--help'))!
    const command = usage[1]!.trim()
    expect(`${named} `, `linktrial ${command} ${usage[2]}`).toMatch(new RegExp(`^${command} `))
    if (named !== command) expect(usage[2], `linktrial ${named}`).toMatch(/^[A-Z]/)
  }
})
