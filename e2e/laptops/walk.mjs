// A stranger's hour in the browser, on two laptops that have joined: node walk.mjs LINK, in the
// folder web. Prints what was done after how many seconds.
import { createRequire } from 'node:module'
import { mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const { chromium } = createRequire(join(process.cwd(), 'package.json'))('playwright-core')
const link = process.argv[2]
const site = new URL(link).origin
const shots = process.env.LINKTRIAL_SHOTS
const began = Date.now()
const seconds = () => ((Date.now() - began) / 1000).toFixed(1).padStart(6)

const browser = await chromium.launch({ executablePath: '/usr/bin/chromium-headless-shell', args: ['--no-sandbox', '--disable-gpu'] })
const page = await (await browser.newContext({ ignoreHTTPSErrors: true, viewport: { width: 1366, height: 768 }, locale: 'en-GB' })).newPage()
page.setDefaultTimeout(60_000)
const minutes = (n) => ({ timeout: n * 60_000 })

async function step(what, fullPage = true) {
  console.log(`${seconds()} s  ${what}`)
  if (!shots) return
  mkdirSync(shots, { recursive: true })
  await page.screenshot({ path: join(shots, `walk-${what.replace(/[^a-z]+/gi, '-').toLowerCase()}.png`), fullPage })
}
const menu = (name) => page.getByRole('link', { name, exact: true }).first().click()
const button = (name) => page.getByRole('button', { name, exact: true })

process.on('uncaughtException', async (e) => {
  await step('failed').catch(() => undefined)
  console.error(await page.locator('main').innerText().catch(() => ''))
  console.error(e)
  process.exit(1)
})
await page.goto(link)
await page.getByLabel('Name').fill('alice')
await page.getByLabel('Password', { exact: true }).fill('four words of her own')
await page.getByLabel('Password again').fill('four words of her own')
await button('Make the first admin').click()
await page.getByRole('link', { name: 'Set up', exact: true }).waitFor()
await step('first admin')

await menu('Set up')
for (const name of ['laptop-a', 'laptop-b']) {
  const card = page.getByRole('article', { name })
  await card.getByRole('radio', { name: /^radio0\b/ }).check()
  await card.getByRole('button', { name: 'Try it' }).click()
  await card.getByText(/radio0 has the address/).waitFor()
}
await step('radios set up')
// For the documents.
if (shots) await page.getByRole('article', { name: 'laptop-b' }).screenshot({ path: join(shots, 'hour-setup.png') })
await button('Start preflight').click()
await page.getByText(/checks passed/).first().waitFor(minutes(1))
await page.locator('button:enabled', { hasText: 'Start preflight' }).waitFor(minutes(1))
await step('preflight')

await menu('Measure')
await button('Measure this link').click()
await page.getByText(/^Measuring\./).waitFor()
await button('CSV').waitFor(minutes(12))
await step('measured')

await button('Compare protocols').click()
const compare = page.getByRole('region', { name: 'Compare protocols' })
await compare.getByLabel('Time that it may take').selectOption('10 minutes')
await compare.getByText(/% with 80 % chance$/).waitFor()
await step('comparison proposed')
await compare.getByRole('button', { name: 'Start', exact: true }).click()
const dialog = page.getByRole('dialog')
await dialog.getByText(/nodes are connected/).waitFor()
await dialog.getByRole('button', { name: 'Start', exact: true }).click()
await dialog.getByRole('button', { name: 'Preflight, then start' }).click()
await page.waitForURL('**/runs/*', minutes(2))
await step('comparison runs')
await page.getByText('completed', { exact: true }).first().waitFor(minutes(15))
await menu('Results')
await page.getByText('compare', { exact: true }).click()
await page.getByText(/decided|within noise/i).first().waitFor()
await step('compared')

await button('Report').click()
const saved = page.waitForEvent('download')
await page.getByRole('button', { name: /HTML/ }).click()
const report = await saved
if (!readFileSync(await report.path(), 'utf8').includes('Conclusion')) throw new Error(`${report.suggestedFilename()} concludes nothing`)
if (shots) await report.saveAs(join(shots, 'walk-report.html'))
// A laptop without Python says what PDF needs.
await button('Report').click()
const typeset = page.waitForEvent('download').then((d) => d.suggestedFilename())
await page.getByRole('button', { name: /PDF/ }).click()
console.log(await Promise.race([typeset, page.getByText(/python3/).textContent()]))
await step('report')
await browser.close()
