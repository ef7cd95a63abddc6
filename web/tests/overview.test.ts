// The overview as a director reads it: what needs attention, what runs, what comes next, how campaigns ended.
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { clean, shot, station, type Station, troubles, until } from './harness'

let s: Station
beforeAll(async () => {
  s = await station('over')
})
afterAll(() => s?.stop())

async function call<T>(procedure: string, body: unknown): Promise<T> {
  const r = await fetch(`${s.url}/linktrial.v1.${procedure}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  if (!r.ok) throw new Error(`${procedure}: ${await r.text()}`)
  return (await r.json()) as T
}
const planOf = (name: string, sizes: string, iterations: number) => `name: ${name}
radio: prc-117g-anw2c
topology: vip-lot
size: ${sizes}
treatments:
  - {name: tcp-cubic, label: TCP CUBIC, protocol: tcp, options: {congestion: cubic}}
  - {name: tcp-reno, label: TCP Reno, protocol: tcp, options: {congestion: reno}}
iterations: ${iterations}
seed: 1
limits: {connect: 10s, transfer: 60s}
`
async function start(name: string, sizes: string, iterations: number): Promise<string> {
  const { campaignId } = await call<{ campaignId: string }>('OperatorService/StartPlan', {
    file: `${name}.yaml`,
    text: Buffer.from(planOf(name, sizes, iterations)).toString('base64'),
  })
  return campaignId
}
const attention = (page: Page) => page.getByRole('region', { name: 'Needs attention' })
const widths = [1366, 1024, 768, 390]
async function everyWidth(page: Page, name: string) {
  for (const width of widths) {
    await page.setViewportSize({ width, height: width < 600 ? 844 : 768 })
    await page.waitForTimeout(250)
    expect(await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth)).toBe(true)
    await shot(page, `${name}-${width}`)
  }
  await page.setViewportSize({ width: 1366, height: 768 })
}

test('a scheduled start that failed is the first thing said, with its reason', async () => {
  const page = await s.open('/')
  await page.getByText('nothing needs attention').waitFor()
  await page.getByText('No start is scheduled.').waitFor()
  await page.getByText('No node has connected yet.').waitFor()
  await call('LibraryService/Schedule', {
    plan: 'quickstart',
    at: new Date(Date.now() + 3000).toISOString(),
    patience: '10s',
  })
  const failed = attention(page).getByText(/quickstart, scheduled for \d\d:\d\d:\d\d UTC, did not start/)
  await failed.waitFor()
  expect(await attention(page).innerText()).toMatch(/node/i)
  await page.getByText('1 needs attention').waitFor()
  await clean(page)
  await page.close()
})

test('what runs, what it waits for, what comes next', async () => {
  await s.labUp('--topology', 'vip-lot')
  const first = await start('short', '16 KiB', 4)
  const page = await s.open('/')
  const rows = page.getByRole('row')
  // Its comparison, in the words of its results.
  await rows.filter({ hasText: 'short' }).filter({ hasText: 'completed' }).waitFor({ timeout: 170_000 })
  const row = rows.filter({ hasText: 'short' })
  await row.getByText('8 of 8').waitFor()
  const said = await row.getByRole('cell').nth(3).innerText()
  expect(said).toMatch(/leads|within noise/)
  const { runs } = await call<{
    runs: { lead: { text: string }; treatments: { label: string; average: number; max: number }[] }[]
  }>('ResultService/Summarize', { ids: [first] })
  expect(said.replace(/\s+of short$/, '')).toBe(runs[0]!.lead.text)
  expect(await row.getByRole('cell').nth(4).innerText()).toMatch(/now|ago/)
  // And its values: as numbers, and as bars on one scale.
  const latest = page.getByRole('region', { name: /^Latest result: short .*16 KiB/ })
  const { treatments } = runs[0]!
  const greatest = Math.max(...treatments.map((t) => t.max))
  for (const t of treatments) {
    const values = latest.getByRole('row').filter({ has: page.getByRole('rowheader', { name: t.label, exact: true }) })
    expect(await values.getByRole('cell').first().innerText()).toBe((t.average / 1024).toFixed(2))
    const bar = values.locator('.bar')
    const long = (await bar.locator('i').boundingBox())!.width / (await bar.locator('div').boundingBox())!.width
    expect(Math.abs(long - t.average / greatest)).toBeLessThan(0.02)
  }

  const long = await start('long', '[64 KiB, 96 KiB]', 200)
  const item = page.getByRole('listitem').filter({ has: page.getByRole('link', { name: 'long', exact: true }) })
  await item.getByText('Run 1 of 2: prc-117g-anw2c, vip-lot, 64 KiB').waitFor()
  await item.getByText(/[1-9]\d* of 800 trials/).waitFor({ timeout: 170_000 })
  await item.getByText('running', { exact: false }).first().waitFor()
  await item.getByText('Next run: prc-117g-anw2c, vip-lot, 96 KiB').waitFor()
  await item.getByText(/about .* left, ends about (\d{4}-\d\d-\d\d )?\d\d:\d\d:\d\d UTC/).waitFor()
  const behind = await start('behind', '64 KiB', 2)
  const queued = page.getByRole('listitem').filter({ has: page.getByRole('link', { name: 'behind', exact: true }) })
  await queued.getByText(/Waits for .*\./).waitFor()
  expect(await queued.innerText()).not.toContain('ends about')

  const at = new Date(Date.now() + 2 * 3600_000)
  await call('LibraryService/Schedule', { plan: 'quickstart', at: at.toISOString(), name: 'evening' })
  await page.reload()
  await page.getByText(/evening in 1 h 59 min/).waitFor()
  await page.getByText(`${at.toISOString().slice(11, 19)} UTC`).waitFor()
  await page.getByText('3 of 3 nodes connected').waitFor()
  await clean(page)
  await everyWidth(page, 'overview')

  // On a phone: trouble, what runs, campaigns, then the rest.
  await page.setViewportSize({ width: 390, height: 844 })
  const top = async (l: ReturnType<Page['getByText']>) => (await l.boundingBox())!.y
  const order = [
    await top(attention(page)),
    await top(page.getByRole('heading', { name: 'Running now' })),
    await top(page.getByRole('heading', { name: 'Campaigns' })),
    await top(page.getByRole('heading', { name: 'Scheduled starts' })),
  ]
  expect(order).toEqual([...order].sort((a, b) => a - b))
  expect(order[1]!, 'what runs is on the first screen').toBeLessThan(700)
  for (const theme of ['dark', 'sun', 'light']) {
    const p = await s.open('/', { theme })
    await p.getByText('Run 1 of 2').waitFor()
    await clean(p)
    await shot(p, `overview-${theme}`)
    await p.close()
  }
  await page.close()

  const after = await s.open('/')
  await call('OperatorService/AbortCampaign', { campaignId: behind, reason: 'it rains' })
  await after.getByRole('row').filter({ hasText: 'behind' }).getByText('it rains').waitFor()
  await after.close()
  expect(long).not.toBe(first)
})

test('a paused run and a lost node are named while they last', async () => {
  const page = await s.open('/')
  await page.getByText('Run 1 of 2').waitFor()
  const list = await call<{ runs: { id: string }[] }>('OperatorService/ListRuns', { open: true })
  const running = list.runs.at(-1)!.id
  s.linktrial('run', 'pause', running)
  await attention(page).getByText('long is paused.').waitFor()
  await attention(page).getByText('A command paused it: it waits for Resume.').waitFor()
  expect(await page.getByText(/ends about/).count(), 'no end is known').toBe(0)
  s.linktrial('run', 'resume', running)
  await attention(page).getByText('long is paused.').waitFor({ state: 'detached' })

  const pids = s.pids({ agent: 'relay' })
  for (const p of pids) process.kill(p, 'SIGSTOP')
  try {
    await attention(page)
      .getByText(/No contact with relay since \d\d:\d\d:\d\d UTC, \d+ s\./)
      .waitFor()
    await attention(page).getByText('It takes part in long.').waitFor()
    await page.getByText('2 of 3 nodes connected').waitFor()
    await clean(page)
    // Also where somebody looks at what came of the run so far.
    for (const path of [`/results?ids=${running.replace(/-\d+$/, '')}&tab=table`, '/runs']) {
      const other = await s.open(path)
      await other.getByText(/No contact with relay since \d\d:\d\d:\d\d UTC, \d+ s\./).waitFor()
      await clean(other)
      await other.close()
    }
    await everyWidth(page, 'overview-lost')
  } finally {
    for (const p of pids) process.kill(p, 'SIGCONT')
  }
  await attention(page)
    .getByText(/No contact with relay/)
    .waitFor({ state: 'detached' })
  await attention(page)
    .getByRole('link', { name: /Open scheduled starts/ })
    .click()
  await page.getByRole('heading', { name: 'Plans' }).waitFor()
  await until('the campaign is aborted', () =>
    s.linktrial('run', 'abort', running.replace(/-\d+$/, ''), '--reason', 'the test has ended'),
  )
  expect(troubles).toEqual([])
})

test('the day is closed with one button, and what is under way is named', async () => {
  const open = await start('still-open', '4 MiB', 4)
  const page = await s.open('/')
  await page.getByRole('button', { name: 'Close the day' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Date').waitFor()
  await dialog.getByLabel('Time zone').waitFor()
  await clean(page)
  await shot(page, 'overview-close-day')
  const [file] = await Promise.all([
    page.waitForEvent('download'),
    dialog.getByRole('button', { name: 'Close the day' }).click(),
  ])
  expect(file.suggestedFilename()).toMatch(/^linktrial-day-\d{4}-\d\d-\d\d\.zip$/)
  await dialog.getByRole('heading', { name: 'Not complete' }).waitFor()
  await dialog.getByText(new RegExp(`Run ${open}-1 of still-open is not over`)).waitFor()
  await dialog.getByRole('link', { name: 'behind' }).waitFor()
  await dialog.getByText('Write down the fingerprint').waitFor()
  await clean(page)
  await everyWidth(page, 'overview-day-closed')
  await dialog.getByRole('button', { name: 'Done' }).click()
  await until('the campaign is aborted', () => s.linktrial('run', 'abort', open, '--reason', 'the test has ended'))
  expect(troubles).toEqual([])
})
