// No page scrolls sideways, from a laptop to a phone, and the matrix of a run of
// many treatments fits and follows the run.
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { inkOf } from './pdf'
import { axe, shot, type Station, station, troubles, until } from './harness'

const widths = [1366, 1024, 768, 390]
const labels = [
  ...['cubic', 'reno', 'bbr'].map((c) => ({ options: `{congestion: ${c}}`, label: `TCP ${c}` })),
  ...Array.from({ length: 9 }, (_, i) => ({
    options: `{congestion: cubic, send_buffer: ${64 + i * 16} KiB}`,
    label: `TCP CUBIC with a send buffer of ${64 + i * 16} KiB`,
  })),
]
const plan = `name: twelve
radio: lttcp-on-off
topology: vip-lot
size: 32 KiB
treatments:
${labels.map((t, i) => `  - {name: tcp-${i}, label: "${t.label}", protocol: tcp, options: ${t.options}}`).join('\n')}
sweep:
  - {name: loss, set: channel.loss, values: [0, 0.01]}
iterations: 100
order: fixed
seed: 1
limits: {connect: 5s, transfer: 20s, attempts: 1}
control: out-of-band
sample_interval: 100ms
`

let s: Station
let campaign: string
/** Pages of one browser share its cache of scripts. */
let first: Page
beforeAll(async () => {
  s = await station('layout')
  await s.labUp('--radio', 'lttcp-on-off', '--topology', 'vip-lot')
  const r = await fetch(`${s.url}/linktrial.v1.OperatorService/StartPlan`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ file: 'twelve.yaml', text: Buffer.from(plan).toString('base64') }),
  })
  campaign = ((await r.json()) as { campaignId: string }).campaignId
  await until('a trial has ended', async () => {
    const runs = await fetch(`${s.url}/linktrial.v1.OperatorService/ListRuns`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ campaignId: campaign }),
    })
    return ((await runs.json()) as { runs: { trialsEnded?: number }[] }).runs.some((x) => (x.trialsEnded ?? 0) > 13)
  })
  first = await s.open('/no/such/page')
}, 300_000)
afterAll(() => s?.stop())

const resize = async (page: Page, width: number) => {
  await page.setViewportSize({ width, height: width < 600 ? 844 : 768 })
  // Figures and tables follow the window's size, at the next frames.
  await page.evaluate(async (width) => {
    const shape = () =>
      [...document.querySelectorAll('main, main canvas, main table, .table-scroll')]
        .map((e) => `${e.clientWidth} ${e.scrollWidth} ${e.clientHeight}`)
        .join()
    const end = performance.now() + 250
    for (let last = '', same = 0; (same < 4 || window.innerWidth !== width) && performance.now() < end;) {
      await new Promise((done) => requestAnimationFrame(done))
      const now = shape()
      same = now === last ? same + 1 : 0
      last = now
    }
  }, width)
}
/** What reaches beyond the right edge of the window, and is not scrolled or cut by an element around it. */
const beyond = (page: Page) =>
  page.evaluate(() => {
    if (document.documentElement.scrollWidth <= window.innerWidth) return []
    return [...document.querySelectorAll('body *')]
      .filter((e) => e.getBoundingClientRect().right > window.innerWidth + 1)
      .slice(0, 5)
      .map((e) => `${e.tagName} ${e.className}`)
      .concat(`the page is ${document.documentElement.scrollWidth} wide`)
  })

/** Tables that scroll sideways by themselves, by their first words. */
const scrolled = (page: Page) =>
  page.evaluate(() =>
    [...document.querySelectorAll('.table-scroll')]
      .filter((e) => e.scrollWidth > e.clientWidth + 1)
      .map((e) => `${e.scrollWidth} of ${e.clientWidth}: ${e.textContent?.trim().slice(0, 60)}`),
  )
/** From which width on the tables of a page are seen whole. */
const fits: Record<string, number> = {
  overview: 390,
  plans: 390,
  runs: 390,
  choose: 390,
  'results-trials': 390,
  approvals: 390,
  users: 390,
  protocols: 1024,
  audit: 390,
  identities: 390,
}

test.each([
  ['overview', '/', 'Running'],
  ['fleet', '/fleet', 'Preflight'],
  ['identities', '/fleet/identities', 'Identities'],
  ['setup', '/setup', 'Set up'],
  ['measure', '/measure', 'Measure this link'],
  ['plans', '/plans', 'Scheduled'],
  ['plan', '/plans/quickstart', 'quickstart'],
  ['runs', '/runs', 'twelve'],
  ['run', '/runs/CAMPAIGN', 'Iteration'],
  ['choose', '/results', 'twelve'],
  ...['figure', 'table', 'cumulative', 'cdf', 'delivery', 'iterations', 'sweep', 'sequence', 'trials'].map(
    (t) => [`results-${t}`, `/results?ids=CAMPAIGN&tab=${t}`, 'Download data'] as const,
  ),
  ['attempt', '/results/attempt/CAMPAIGN-1/0', 'iteration 1'],
  ['map', '/map', 'Compare with'],
  ['profiles', '/profiles', 'As emulated'],
  ['protocols', '/protocols', 'Where it runs'],
  ['approvals', '/protocols/approvals', 'Accepted'],
  ['lab', '/lab', 'Lab'],
  ['notifications', '/notifications', 'What happened'],
  ['notifications-sent', '/notifications?show=sent', 'This browser'],
  ['users', '/users', 'Users'],
  ['audit', '/audit', 'Audit log'],
  ['account', '/account', 'Account'],
  ['nowhere', '/no/such/page', 'overview'],
] as const)('%s is as wide as the window', async (name, path, words) => {
  const page = await s.open(path.replace('CAMPAIGN', campaign), { in: first })
  await page.locator('main').getByText(words).first().waitFor()
  for (const width of widths) {
    await resize(page, width)
    await expect.poll(() => beyond(page), { timeout: 10_000, message: `${name} at ${width}` }).toEqual([])
    if (width >= (fits[name] ?? Infinity)) expect(await scrolled(page), `tables of ${name} at ${width}`).toEqual([])
    await shot(page, `layout-${name}-${width}`, false)
  }
  // At a phone's width tables scroll by themselves: also for who has only a keyboard.
  expect((await axe(page)).filter((f) => f.startsWith('scrollable-region'))).toEqual([])
  await page.close()
})

test('twelve treatments and a hundred iterations fit, and the running trial is followed', async () => {
  const page = await s.open(`/runs/${campaign}`)
  const box = page.locator('.table-scroll:has(> .matrix)')
  const running = page.locator('button[data-trial].running')
  await running.waitFor()
  expect(await page.locator('.matrix tbody tr').count()).toBe(100)
  const columns = page.locator('.matrix thead th')
  expect(await columns.count()).toBe(13)
  expect(await box.evaluate((b) => b.scrollWidth <= b.clientWidth)).toBe(true)
  expect(await columns.nth(12).getAttribute('title')).toBe(labels[11]!.label)
  expect(await columns.nth(12).locator('[aria-hidden]').innerText()).not.toBe(labels[11]!.label)
  expect(await page.locator('button[data-trial="13"]').getAttribute('aria-label')).toContain('Iteration 2, TCP reno: ')

  /** Within the frame, right of the iterations and below the headings. */
  const inView = () =>
    page.evaluate(() => {
      const cell = document.querySelector('button[data-trial].running')?.getBoundingClientRect()
      const frame = document.querySelector('.table-scroll:has(> .matrix)')!
      const corner = frame.querySelector('th')!.getBoundingClientRect()
      const f = frame.getBoundingClientRect()
      return (
        !!cell &&
        cell.left >= corner.right - 4 &&
        cell.right <= f.left + frame.clientWidth + 1 &&
        cell.top >= corner.bottom - 4 &&
        cell.bottom <= f.top + frame.clientHeight + 1
      )
    })
  await resize(page, 390)
  expect(await box.evaluate((b) => b.scrollWidth > b.clientWidth)).toBe(true)
  await until('a trial of a column beyond the window is seen to run', async () => {
    const trial = Number(await running.getAttribute('data-trial', { timeout: 5000 }))
    return trial % 12 > 8 && (await inView())
  })
  // Who scrolls is left alone, until he wants to follow again.
  await box.evaluate((b) => (b.scrollTop = b.scrollHeight))
  const follow = page.getByRole('button', { name: 'Follow the running trial' })
  await follow.waitFor()
  const before = await running.getAttribute('data-trial')
  await until(
    'the next trial runs',
    async () => (await running.getAttribute('data-trial', { timeout: 5000 })) !== before,
  )
  expect(await inView()).toBe(false)
  await follow.click()
  await until('the running trial is in view', inView)
  await follow.waitFor({ state: 'detached' })
})

test('runs are told apart by what a sweep has set', async () => {
  const page = await s.open('/')
  await page.getByText('Next run: lttcp-on-off, vip-lot, 32 KiB, loss 0.01').waitFor()
  await page.goto(`${s.url}/runs/${campaign}`)
  await page.getByRole('tab', { name: '2. loss 0.01' }).waitFor()
  expect(await page.getByRole('tab').count()).toBe(2)
  await page.close()
})

test.each([
  ['results-table', '/results?ids=CAMPAIGN&tab=table', 1055],
  ['results-figure', '/results?ids=CAMPAIGN', 703],
  ['run', '/runs/CAMPAIGN', 1055],
])('%s is light on paper, without controls, and nothing is cut off', async (name, path, width) => {
  const page = await s.open(path.replace('CAMPAIGN', campaign), { theme: 'dark' })
  await page.locator('[data-drawn], table.plain td, button[data-trial].succeeded').first().waitFor()
  await page.emulateMedia({ media: 'print' })
  // What A4 leaves between its margins, in CSS pixels, upright or across.
  await resize(page, width)
  await expect.poll(() => page.evaluate(() => document.documentElement.dataset.theme)).toBe('light')
  const seen = await page.evaluate(() => ({
    controls: [
      ...document.querySelectorAll<HTMLElement>('header.bar, nav, .tools, .button, button:not(.prints, .cell)'),
    ]
      .filter((e) => e.offsetParent)
      .map((e) => e.outerHTML.slice(0, 80)),
    over: [...document.querySelectorAll('#run-view > *')]
      .filter((e) => e.checkVisibility())
      .filter((e, i, all) => i > 0 && e.getBoundingClientRect().top < all[i - 1]!.getBoundingClientRect().bottom - 1)
      .length,
    cut: [...document.querySelectorAll('.table-scroll')].filter(
      (e) => getComputedStyle(e).overflowY !== 'visible' || e.scrollWidth > e.clientWidth + 1,
    ).length,
    wide: [...document.querySelectorAll('canvas')].filter((c) => c.getBoundingClientRect().right > window.innerWidth)
      .length,
  }))
  expect(seen).toEqual({ controls: [], over: 0, cut: 0, wide: 0 })
  // A trial that ends draws the figure again, which follows the width a moment later.
  await expect.poll(() => beyond(page), { timeout: 10_000 }).toEqual([])
  await shot(page, `paper-${name}`)
  await page.close()
})

// On paper the chart's place has the height of what is drawn in it: none, when it was drawn for that.
test.each([
  ['run', '/runs/CAMPAIGN', '.place canvas'],
  ['results-figure', '/results?ids=CAMPAIGN', '[data-drawn] canvas'],
])('the charts of %s have ink when they are printed', async (name, path, canvas) => {
  const page = await s.open(path.replace('CAMPAIGN', campaign), { theme: 'light' })
  await page.locator(canvas).first().waitFor()
  if (name === 'run') await page.getByRole('img', { name: /[\d.]+ KB\/s/ }).waitFor()
  for (const media of ['screen', 'print'] as const) {
    await page.emulateMedia({ media })
    await resize(page, 703)
    await expect.poll(async () => (await page.locator(canvas).first().boundingBox())!.height).toBeGreaterThan(150)
    const { images } = inkOf(await page.pdf({ format: 'A4', preferCSSPageSize: true }))
    expect(images.length, `${name} from ${media}`).toBeGreaterThan(0)
    for (const i of images) {
      expect(Math.min(i.width, i.height), `${name} from ${media}`).toBeGreaterThan(100)
      expect(i.ink, `${name} from ${media}`).toBeGreaterThan(0.005)
    }
  }
  await page.close()
})

test('on a phone a row of a table is a block whose short cells share a line', async () => {
  const page = await s.open('/protocols/approvals')
  await resize(page, 390)
  const cells = page.locator('table.rows tbody tr').first().locator('td')
  const [protocol, digest] = [(await cells.nth(0).boundingBox())!, (await cells.nth(1).boundingBox())!]
  expect(digest.y).toBe(protocol.y)
  expect(digest.x).toBeGreaterThan(protocol.x)
  // Cells that mean nothing without their heading say it.
  await page.goto(`${s.url}/protocols`)
  const value = page.locator('td.default').first()
  await value.waitFor()
  expect(await value.evaluate((e) => getComputedStyle(e, '::before').content)).toBe('"default: "')
  await page.close()
})

test('a phone shows first what its user looks for', async () => {
  const phone = async (path: string) => {
    const page = await s.open(path.replace('CAMPAIGN', campaign))
    await resize(page, 390)
    return page
  }
  // Without banners: trouble comes first, and a busy machine may lose contact with a node.
  const top = async (page: Page, words: string | RegExp) => {
    const at = page.locator('main').getByText(words).first()
    await at.waitFor()
    return at.evaluate(
      (e) =>
        e.getBoundingClientRect().y -
        [...document.querySelectorAll('main .banner')].reduce(
          (sum, b) => sum + b.getBoundingClientRect().height + 10,
          0,
        ),
    )
  }
  // Who stands at the relay keeps this address.
  const fleet = await phone('/fleet?find=relay')
  expect(await top(fleet, 'emulated, any profile')).toBeLessThan(844)
  expect(await top(fleet, 'Start preflight')).toBeLessThan(844)
  expect(await fleet.getByText('Machine', { exact: true }).isVisible()).toBe(false)
  await fleet.getByText('Clock, battery, disk, drivers').click()
  await fleet.getByText('Machine', { exact: true }).waitFor()
  const run = await phone('/runs/CAMPAIGN')
  expect(await top(run, /^State$/)).toBeLessThan(400)
  const results = await phone('/results?ids=CAMPAIGN')
  await results.locator('[data-drawn]').first().waitFor()
  expect((await results.locator('canvas').first().boundingBox())!.y).toBeLessThan(844)
  await results.getByText('Filters and treatments').click()
  await results.getByRole('button', { name: 'TCP bbr' }).click()
  await results.getByText('Filters and treatments, 1 set').waitFor()
  for (const [name, page] of Object.entries({ fleet, run, results })) await shot(page, `phone-${name}`, false)
})

test('no page has thrown or logged an error', () => expect(troubles).toEqual([]))
