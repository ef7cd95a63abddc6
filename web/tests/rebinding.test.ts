// Pages of other sites in a real browser: one whose name resolves to the orchestrator's
// address (DNS rebinding), and one that has the browser call the orchestrator.
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { clean, launch, type Station, station, troubles } from './harness'

let s: Station
let browser: Browser
let site: Server
let port: string
beforeAll(async () => {
  s = await station('rebinding', '--allow-host', 'trial.example')
  port = new URL(s.url).port
  site = createServer((_, res) => res.setHeader('Content-Type', 'text/html').end('<title>Another site</title>'))
  await new Promise<void>((done) => site.listen(0, '127.0.0.1', done))
  browser = await launch('--host-resolver-rules=MAP *.example 127.0.0.1')
})
afterAll(async () => {
  await browser?.close()
  site?.close()
  await s?.stop()
})

const keys = () => s.linktrial('signing', 'keys')
/** What a script of the page gets for a call: the status and the text of the answer, or that there was none. */
const call = (page: Page, base: string, procedure: string) =>
  page.evaluate(
    async ([url]) => {
      try {
        const r = await fetch(url!, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: '{}' })
        return `${r.status} ${await r.text()}`
      } catch (e) {
        return String(e)
      }
    },
    [`${base}/linktrial.v1.${procedure}`],
  )

test('a page whose name resolves to the orchestrator reaches nothing', async () => {
  const page = await browser.newPage()
  const answer = await page.goto(`http://rebound.example:${port}/`)
  expect(answer?.status()).toBe(421)
  expect(await page.textContent('body')).toContain('--allow-host')
  const before = keys()
  for (const procedure of ['OperatorService/ListRuns', 'TrustService/RotateSigningKey', 'LibraryService/SavePlan'])
    expect(await call(page, '', procedure)).toMatch(/^403 .*rebound\.example/)
  expect(keys()).toBe(before)
})

test('a page of another site changes nothing', async () => {
  const page = await browser.newPage()
  const statuses: number[] = []
  page.on('response', (r) => r.url().startsWith(s.url) && r.request().method() === 'POST' && statuses.push(r.status()))
  await page.goto(`http://other.example:${(site.address() as AddressInfo).port}/`)
  const before = keys()
  expect(await call(page, s.url, 'TrustService/RotateSigningKey')).toContain('Failed to fetch')
  // A form needs no permission of the server that it is sent to.
  await page.evaluate((url) => {
    const form = document.createElement('form')
    form.method = 'post'
    form.enctype = 'text/plain'
    form.action = `${url}/linktrial.v1.TrustService/RotateSigningKey`
    document.body.append(form)
    form.submit()
  }, s.url)
  await page.waitForURL(`${s.url}/**`)
  expect(await page.textContent('body')).toContain('a page of another origin')
  expect(statuses).toContain(403)
  expect(keys()).toBe(before)
})

test('the pages work under the names of the orchestrator', async () => {
  for (const host of ['localhost', 'trial.example']) {
    const page = await browser.newPage()
    page.on('pageerror', (e) => troubles.push(`${host}: ${e.message}`))
    await page.goto(`http://${host}:${port}/fleet`)
    await page.getByRole('link', { name: 'emulated lab' }).first().waitFor()
    expect(await call(page, '', 'TrustService/RotateSigningKey')).toMatch(/^200 /)
    await clean(page)
  }
  expect(troubles).toEqual([])
})
