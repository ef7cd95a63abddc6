// How soon every page can be used with a large campaign in the store, and what it loads for that, and what axe
// finds. Times are printed, not asserted: the machine may be busy. LINKTRIAL_SAMPLES is how many samples each of the
// 10 000 trials has, 20 where it is not set.
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { axeRules, station, type Station, troubles } from './harness'

let s: Station
beforeAll(async () => {
  s = await station('speed')
  await s.killServe()
  s.bench('large', '--keep', '--runs', '25', '--samples', process.env.LINKTRIAL_SAMPLES ?? '20')
  await s.serve()
}, 600_000)
afterAll(() => s?.stop())

interface Load {
  interactive: number
  requests: number
  wire: number
  scripts: number
  names: string[]
}

/** Opens a page twice in one browser and measures the second time: scripts and results are in their caches. */
async function load(page: Page, path: string, content: string): Promise<Load> {
  let last: Load | undefined
  for (const warm of [false, true]) {
    await page.goto('about:blank')
    await page.goto(s.url + path)
    const handle = await page.waitForFunction(
      (content) =>
        document.querySelector('main h1') &&
        ![...document.querySelectorAll('main [aria-busy="true"]')].some((e) => e.checkVisibility()) &&
        [...document.querySelectorAll('main *')].some((e) => e.matches(content)) &&
        performance.now(),
      content,
      { timeout: 120_000 },
    )
    if (!warm) continue
    const interactive = Number(await handle.jsonValue())
    last = await page.evaluate((interactive) => {
      const all = (performance.getEntriesByType('resource') as PerformanceResourceTiming[]).filter(
        (e) => e.startTime <= interactive,
      )
      const [self] = performance.getEntriesByType('navigation') as PerformanceNavigationTiming[]
      const names = all.map((e) => new URL(e.name).pathname)
      return {
        interactive,
        // What is asked again by the clock depends on how slow the machine is.
        requests: new Set(names.filter((n) => n !== '/healthz')).size + 1,
        wire: all.reduce((n, e) => n + e.transferSize, self!.transferSize),
        scripts: all.filter((e) => e.name.endsWith('.js')).reduce((n, e) => n + e.encodedBodySize, 0),
        names,
      }
    }, interactive)
  }
  return last!
}

// What a page shows when it can be used, and which of the large chunks it may load.
const charts = ['results', 'attempt']
const editor = ['plan']
const pages: [name: string, path: string, content: string][] = [
  ['overview', '/', 'table.rows tbody tr'],
  ['fleet', '/fleet', 'h2, h3, table, .hint'],
  ['identities', '/fleet/identities', 'h2, .hint, p'],
  ['set up', '/setup', 'main p'],
  ['measure', '/measure', 'main p'],
  ['plans', '/plans', 'table tbody tr'],
  ['plan', '/plans/quickstart', '.cm-content, textarea, form'],
  ['runs', '/runs', 'table tbody tr'],
  ['run', '/runs/large', 'button[data-trial]'],
  ['choose', '/results', 'table tbody tr'],
  ['results', '/results?ids=large', '[data-drawn]'],
  ['results table', '/results?ids=large&tab=table', 'table tbody tr'],
  ['attempt', '/results/attempt/large-1/0', '[data-drawn]'],
  ['map', '/map', 'svg'],
  ['radios', '/profiles', 'h2, h3, table, dl'],
  ['protocols', '/protocols', 'h2, h3, table, .hint'],
  ['approvals', '/protocols/approvals', 'h2, h3, table, .hint'],
  ['lab', '/lab', 'h2, h3, table, .hint, select'],
  ['notifications', '/notifications', 'ol.told li, .hint'],
  ['account', '/account', 'p'],
  ['audit log', '/audit', 'table tbody tr, .hint, p'],
]

test('every page loads little, charts and editor only where they are used', async () => {
  const page = await s.open('/')
  // A figure of many panels has parts: no page of tens of thousands of pixels.
  await page.goto(`${s.url}/results?ids=large`)
  await page.getByText('Panels 1 to 12 of 25, part 1 of 3').first().waitFor()
  await page.locator('[data-drawn]').first().waitFor()
  expect(await page.evaluate(() => document.documentElement.scrollHeight)).toBeLessThan(4000)
  // On paper a part says that it is one.
  await page.emulateMedia({ media: 'print' })
  await page.locator('.paper', { hasText: 'Panels 1 to 12 of 25, part 1 of 3' }).waitFor()
  await page.emulateMedia({ media: 'screen' })
  const lines = [
    '| page | usable after | requests | over the network | scripts, compressed | findings of axe |',
    '|---|---|---|---|---|---|',
  ]
  for (const [name, path, content] of pages) {
    const l = await load(page, path, content)
    const rules = await axeRules(page)
    lines.push(
      `| ${name} | ${(l.interactive / 1000).toFixed(2)} s | ${l.requests} | ${Math.round(l.wire / 1024)} KB | ${Math.round(l.scripts / 1024)} KB | ${rules.join(', ') || 0} |`,
    )
    expect(rules, name).toEqual([])
    expect(l.requests, `${name}: ${l.names.join(' ')}`).toBeLessThanOrEqual(30)
    const checks = l.names.filter((n) => n.endsWith('/CheckPlan')).length
    expect(checks, `${name}: a plan that was loaded is checked once`).toBeLessThanOrEqual(1)
    const loads = (chunk: string) => l.names.some((n) => n.startsWith(`/assets/${chunk}-`))
    if (!charts.includes(name)) expect(loads('echarts'), `${name} has no chart`).toBe(false)
    if (!editor.includes(name)) expect(loads('CodeEditor'), `${name} has no editor`).toBe(false)
  }
  console.log(`with a campaign of 10 000 trials:\n${lines.join('\n')}`)
  expect(troubles).toEqual([])
}, 1_200_000)
