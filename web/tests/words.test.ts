// What people read: every page and dialog, in a browser whose language has AM and PM, and the help of
// every command, without metaphors, library texts, and values without units.
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { clean, shot, station, type Station, troubles, until } from './harness'

const plan = `name: words
title: Words
radio: prc-117g-anw2c
topology: vip-lot
size: 64 KiB
treatments:
  - {name: tcp-cubic, label: TCP CUBIC, protocol: tcp, options: {congestion: cubic, send_buffer: 256 KiB}}
  - {name: sctp, label: SCTP, protocol: sctp, options: {sack_delay: 200ms}}
  - {name: udt, label: UDT, protocol: udt}
iterations: 2
order: fixed
seed: 7
limits: {connect: 10s, transfer: 60s, attempts: 3}
sample_interval: 100ms
`
/** Metaphors and riddles of earlier versions, and what only programs say. */
const foreign =
  /\b(stands?|stood|heard|desk|woke|wakes?|starts? by (?:itself|themselves)|look into it|make it|whoever|patiently|alive|zombie|undefined|null|NaN|Infinity|\[object)\b|no rows in result|context deadline|signal is aborted/i
/** A figure is a drawing: what is measured, stated or published is a value or a parameter. */
const noDrawing = /\b(?:valid|published|emulated|measured|other|no|its|their|every|another|without a) figures?\b/i
/** Twelve hours, months in the order of another language, and the first day of virtual clocks. */
const clocks =
  /\d\s?[AP]M\b|\b[AP]M\b|\b(Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]* \d{1,2}, \d{4}|2000-01-01|1 Jan 2000/
/** Times of day that do not say their zone: in texts it is UTC, on hover the viewer's. */
const zoneless = /\b\d\d:\d\d:\d\d(?:\.\d+)?(?! (?:UTC|CES?T)\b|[\d.Z])/

let s: Station
let campaign = ''
async function call<T>(method: string, body: object): Promise<T> {
  const r = await fetch(`${s.url}/linktrial.v1.${method}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  if (!r.ok) throw new Error(`${method}: ${r.status} ${await r.text()}`)
  return (await r.json()) as T
}
const base64 = (text: string) => Buffer.from(text).toString('base64')

beforeAll(async () => {
  s = await station('words')
  await s.labUp('--radio', 'prc-117g-anw2c', '--topology', 'vip-lot')
  const r = await call<{ campaignId: string }>('OperatorService/StartPlan', { file: 'words.yaml', text: base64(plan) })
  campaign = r.campaignId
  await call('LibraryService/SavePlan', { name: 'words', text: base64(plan) })
  await call('LibraryService/Schedule', { plan: 'words', at: new Date(Date.now() + 30 * 3600_000).toISOString() })
  await until(
    'the campaign has ended',
    async () => {
      const { runs } = await call<{ runs: { state: string }[] }>('OperatorService/ListRuns', { campaignId: campaign })
      return runs.every((x) => /COMPLETED|ABORTED|STOPPED/.test(x.state))
    },
    240,
  )
}, 400_000)
afterAll(() => s?.stop())

/** All that a page says, to the eye or to a screen reader, but what people wrote themselves. */
const said = (page: Page) =>
  page.evaluate(() => {
    const own = '.cm-editor, pre, [role="log"]'
    const out: string[] = [document.title]
    const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
    for (let n = walk.nextNode(); n; n = walk.nextNode()) {
      const e = n.parentElement!
      if (!/^(SCRIPT|STYLE)$/.test(e.tagName) && !e.closest(own) && n.textContent?.trim())
        out.push(n.textContent.trim())
    }
    for (const e of document.querySelectorAll('*'))
      for (const a of ['title', 'aria-label', 'placeholder', 'alt'])
        if (!e.closest(own) && e.getAttribute(a)) out.push(e.getAttribute(a)!)
    return [...new Set(out.map((t) => t.replace(/\s+/g, ' ')))]
  })
/** Fields that the browser draws itself with a time of its language. */
const clockFields = (page: Page) => page.locator('input[type="time"], input[type="datetime-local"]').count()

const press = (name: string | RegExp) => (page: Page) => page.getByRole('button', { name }).first().click()
const views: [name: string, path: string, ready: string, prepare?: (page: Page) => Promise<unknown>][] = [
  ['overview', '/', 'table.rows tbody tr'],
  ['fleet', '/fleet', 'article'],
  ['identities', '/fleet/identities', 'main p'],
  ['set up', '/setup', 'main p'],
  ['measure', '/measure', 'main p'],
  ['plans', '/plans', 'tbody tr'],
  ['plans, new', '/plans', 'tbody tr', press('New plan')],
  ['plan', '/plans/words', '.cm-content'],
  ['plan, order', '/plans/words?show=order', 'table tbody tr'],
  ['plan, start', '/plans/words', '.cm-content', press(/^Start now/)],
  ['plan, schedule', '/plans/words', '.cm-content', press(/^Schedule/)],
  ['plan of a paper', '/plans/decola-2006', '.cm-content'],
  ['runs', '/runs', 'tbody tr'],
  ['run', '/runs/CAMPAIGN', 'button[data-trial].succeeded'],
  ['run, trial', '/runs/CAMPAIGN?trial=1', 'button[data-trial].succeeded'],
  ['run, exclude', '/runs/CAMPAIGN?trial=1', 'button[data-trial].succeeded', press('Exclude …')],
  ['results, choose', '/results', 'tbody tr'],
  ...['figure', 'cumulative', 'cdf', 'delivery', 'iterations', 'sequence'].map(
    (t) => [`results, ${t}`, `/results?ids=CAMPAIGN&tab=${t}`, '[data-drawn]'] as (typeof views)[number],
  ),
  ['results, table', '/results?ids=CAMPAIGN&tab=table', 'tbody tr'],
  ['results, trials', '/results?ids=CAMPAIGN&tab=trials', 'tbody tr'],
  ['results, download', '/results?ids=CAMPAIGN', '[data-drawn]', press('Download data')],
  ['attempt', '/results/attempt/CAMPAIGN-1/1', '[data-drawn]'],
  ['map', '/map?topology=flag-pole', 'svg .length'],
  [
    'map, save',
    '/map?topology=vip-lot',
    'svg .length',
    async (page) => {
      await page.getByRole('button', { name: /, client/ }).focus()
      await page.keyboard.press('ArrowRight')
      await press('Save as …')(page)
    },
  ],
  ['radios', '/profiles?radio=prc-117g-anw2c', 'article h2'],
  ['protocols', '/protocols', 'main h2, main h3'],
  ['approvals', '/protocols/approvals', 'main table, main p'],
  ['lab', '/lab', 'main h2, main .box'],
  ['account', '/account', 'main p'],
  ['notifications', '/notifications', 'ol.told li'],
  ['notifications, where', '/notifications?show=sent', 'main .card'],
  ['notifications, webhook', '/notifications?show=sent', 'main .new', press('Add webhook …')],
  ['notifications, e-mail', '/notifications?show=sent', 'main .new', press('Add e-mail …')],
  ['users', '/users', 'main p'],
  ['audit log', '/audit', 'main h1'],
  ['nowhere', '/no/such/page', 'main a'],
]

test('every page and dialog has plain words, 24 hours, zones and units', async () => {
  const on = await s.open('/', { locale: 'en-US' })
  const found: string[] = []
  for (const [name, path, ready, prepare] of views) {
    const page = await s.open(path.replace('CAMPAIGN', campaign), { in: on })
    await page.locator(ready).first().waitFor()
    await page.waitForFunction(
      () => ![...document.querySelectorAll('main [aria-busy="true"]')].some((e) => e.checkVisibility()),
    )
    await prepare?.(page)
    if (prepare && !name.includes('download')) await page.getByRole('dialog').waitFor()
    for (const t of await said(page)) {
      if (foreign.test(t)) found.push(`${name}: “${t.slice(0, 140)}”: ${foreign.exec(t)![0]}`)
      if (noDrawing.test(t)) found.push(`${name}: “${t.slice(0, 140)}”: ${noDrawing.exec(t)![0]}`)
      if (zoneless.test(t)) found.push(`${name}: “${t.slice(0, 140)}”: ${zoneless.exec(t)![0]}`)
      if (clocks.test(t)) found.push(`${name}: “${t.slice(0, 140)}”: ${clocks.exec(t)![0]}`)
    }
    if (await clockFields(page)) found.push(`${name}: a field with the clock of the browser's language`)
    await page.close()
  }
  await on.close()
  expect(found).toEqual([])
})

test('the time of a start is one of 24 hours, also in an American browser', async () => {
  const page = await s.open('/plans/words', { locale: 'en-US' })
  await page.getByRole('button', { name: /^Schedule/ }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Time, UTC, 24 hours').fill('17:05')
  await dialog.getByText(/^\d{1,2} \w{3} \d{4}, 1[89]:05:00 CES?T$/).waitFor()
  await clean(page)
  await shot(page, 'words-schedule')
  await page.close()
})

test('options, sizes and times have their units wherever they are shown', async () => {
  const page = await s.open(`/results/attempt/${campaign}-1/1`)
  await page.locator('[data-drawn]').first().waitFor()
  await page.getByText('Protocol and options').click()
  const facts = page.locator('pre', { hasText: 'sack_delay' }).first()
  await facts.waitFor()
  await expect.poll(() => facts.innerText()).toMatch(/sack_delay\W+200\s?ms/)
  await page.goto(`${s.url}/results/attempt/${campaign}-1/0`)
  await page.getByText('Protocol and options').click()
  const tcp = page.locator('pre', { hasText: 'send_buffer' }).first()
  await tcp.waitFor()
  await expect.poll(() => tcp.innerText()).toMatch(/send_buffer\W+256 KiB/)
  // Of every driver, on the page of the protocols: times and sizes are no plain numbers.
  let checked = 0
  for (const driver of ['tcp', 'sctp', 'udt', 'haul', 'quic', 'lttcp']) {
    await page.goto(`${s.url}/protocols?protocol=${driver}`)
    await page.locator('td.default').first().waitFor()
    const rows = await page
      .locator('tr:has(td.default)')
      .evaluateAll((all) => all.map((r) => [...r.querySelectorAll('td')].map((c) => c.textContent!.trim())))
    for (const [name, type, preset, range] of rows) {
      if (type !== 'size' && type !== 'duration') continue
      checked++
      for (const x of [preset!, ...range!.split(' to ')]) expect(x, `${driver}, ${name}`).not.toMatch(/^\d+$/)
    }
  }
  expect(checked).toBeGreaterThan(10)
  await page.close()
})

test('the help of every command has the same words', () => {
  const found: string[] = []
  const walk = (path: string[]) => {
    const text = s.linktrial(...path, '--help')
    const name = ['linktrial', ...path].join(' ')
    for (const line of text.split('\n')) {
      if (line.includes('(default /') || line.includes('bash') || line.includes('completion')) continue
      if (foreign.test(line)) found.push(`${name}: ${line.trim()}: ${foreign.exec(line)![0]}`)
      if (noDrawing.test(line)) found.push(`${name}: ${line.trim()}: ${noDrawing.exec(line)![0]}`)
    }
    const group = /^(?:Usage|Examples):/m
    expect(text, name).toMatch(group)
    const all = [...text.matchAll(/^ {2}([a-z][a-z-]*) {2,}\S|^ {2}([a-z][a-z-]{13,}) \S/gm)].map((m) => m[1] ?? m[2]!)
    for (const sub of all)
      if (text.includes('[command]') && sub !== 'completion' && sub !== 'help' && path.length < 3) walk([...path, sub])
  }
  walk([])
  expect(found).toEqual([])
  // One action has one name, on the pages and here.
  const run = s.linktrial('run', '--help')
  for (const word of ['exclude', 'include', 'pause', 'resume', 'skip', 'repeat', 'abort', 'continue'])
    expect(run).toMatch(new RegExp(`^  ${word} +[A-Z]`, 'm'))
})

test('no page has thrown or logged an error', () => expect(troubles).toEqual([]))
