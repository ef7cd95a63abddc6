// What people see while a node, the orchestrator or its database does not answer: all
// of them stopped, so that their kernels still keep the connections.
import { readFileSync, writeFileSync } from 'node:fs'
import type { Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { clean, shotNarrow, type Station, station, troubles, until } from './harness'

let s: Station
beforeAll(async () => {
  s = await station('lost')
  await s.labUp('--topology', 'vip-lot')
})
afterAll(() => s?.stop())

let stopped: number[] = []
function freeze(pids: number[]) {
  expect(pids.length).toBeGreaterThan(0)
  stopped = pids
  for (const p of pids) process.kill(p, 'SIGSTOP')
}
/** The database's children may have ended. */
function thaw() {
  for (const p of stopped) {
    try {
      process.kill(p, 'SIGCONT')
    } catch (e) {
      if ((e as NodeJS.ErrnoException).code !== 'ESRCH') throw e
    }
  }
  stopped = []
}
// What a test leaves open would hold the nodes for the next one.
afterEach(() => {
  thaw()
  for (const c of campaigns.splice(0)) {
    try {
      s.linktrial('run', 'abort', c, '--reason', 'the test has ended')
    } catch (e) {
      if (!String(e).includes('have ended')) throw e
    }
  }
})
const campaigns: string[] = []

/** No text of a library is for people. */
const raw =
  /signal is aborted|AbortError|no rows in result|Failed to fetch|context deadline|\[(unavailable|unknown|internal|canceled)\]/i
async function noRawTexts(page: Page) {
  expect(await page.locator('body').innerText()).not.toMatch(raw)
}

async function start(name: string): Promise<string> {
  const text = `name: ${name}
radio: prc-117g-anw2c
topology: vip-lot
size: 64 KiB
treatments:
  - {name: tcp-cubic, label: TCP CUBIC, protocol: tcp, options: {congestion: cubic}}
iterations: 200
seed: 1
limits: {connect: 10s, transfer: 60s}
`
  const r = await fetch(`${s.url}/linktrial.v1.OperatorService/StartPlan`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ file: `${name}.yaml`, text: Buffer.from(text).toString('base64') }),
  })
  const { campaignId } = (await r.json()) as { campaignId: string }
  campaigns.push(campaignId)
  return campaignId
}

test('a node whose program is stopped is named with its last contact and what is not known', async () => {
  const campaign = await start('stopped')
  const page = await s.open(`/runs/${campaign}`)
  await page.locator('button[data-trial].succeeded').first().waitFor({ timeout: 170_000 })
  freeze(s.pids({ agent: 'relay' }))
  const at = Date.now()
  const banner = page.locator('.banner')
  await banner.waitFor()
  console.log(`a stopped node: the banner came after ${((Date.now() - at) / 1000).toFixed(1)} s`)
  const text = await banner.innerText()
  expect(text).toMatch(/No contact with relay since \d\d:\d\d:\d\d UTC, \d+ s\./)
  // That the run continues is said only with the report of another node, of after the last contact.
  expect(text).toMatch(
    /Whether the run continues there is not known|The run continues: (client|server) reported at \d\d:\d\d:\d\d UTC: /,
  )
  // One meaning, one colour: as on the pages that list what needs attention.
  const colour = (l: typeof banner) => l.evaluate((e) => getComputedStyle(e).borderLeftColor)
  const overview = await s.open('/')
  const item = overview
    .getByRole('region', { name: 'Needs attention' })
    .getByRole('listitem')
    .filter({ hasText: 'relay' })
  await item.waitFor()
  expect(await colour(banner)).toBe(await colour(item))
  await overview.close()
  const clock = /since (\d\d):(\d\d):(\d\d) UTC/.exec(text)!
  const since = new Date(at).setUTCHours(Number(clock[1]), Number(clock[2]), Number(clock[3]), 0)
  expect(since, 'the last contact was before it was stopped').toBeLessThanOrEqual(at)
  await clean(page)
  await shotNarrow(page, 'lost-node')
  thaw()
  await banner.waitFor({ state: 'detached' })
  const notice = /Contact with relay again: there was none from [\d:]+ to [\d:]+ UTC \(\d+ s\)/i
  // The newest: a busy machine may have been without contact before.
  await page.getByText(notice).last().waitFor()
  expect(troubles).toEqual([])
})

test('an agent that died and came back leaves a notice that stays', async () => {
  const campaign = await start('died')
  const page = await s.open(`/runs/${campaign}`)
  await page.locator('button[data-trial].succeeded').first().waitFor({ timeout: 170_000 })
  for (const p of s.pids({ agent: 'relay' })) process.kill(p, 'SIGKILL')
  const notice = page.getByText(/Contact with relay again: .*; its agent was started again/i)
  await notice.waitFor()
  await page.reload()
  await notice.waitFor()
  await shotNarrow(page, 'lost-agent-back')
  expect(troubles).toEqual([])
})

test('while the orchestrator is stopped, every page says so and goes on by itself', async () => {
  const campaign = await start('frozen')
  const paths = ['/', '/runs', '/plans', '/fleet', '/results', `/runs/${campaign}`]
  const pages = await Promise.all(paths.map((p) => s.open(p)))
  for (const p of pages) await p.locator('h1').waitFor()
  await pages.at(-1)!.locator('button[data-trial].succeeded').first().waitFor({ timeout: 170_000 })
  // A page that is loading then.
  const loading = await s.open('/')
  await loading.locator('h1').waitFor()
  let release = () => {}
  const held = new Promise<void>((done) => (release = done))
  await loading.route('**/*ResultService/ListCampaigns', async (route) => {
    await held
    await route.continue()
  })
  await loading.getByRole('link', { name: 'Runs', exact: true }).click()
  await loading.getByText('Loading …').waitFor()
  const at = Date.now()
  freeze(s.pids('serve'))
  const command = s.start('nodes')
  let said = ''
  command.stderr!.on('data', (b: Buffer) => (said += b.toString()))
  const code = new Promise((done) => command.once('exit', done))
  await loading.getByText('Not loaded yet').waitFor()
  expect(await loading.getByText('Loading …').count()).toBe(0)
  await shotNarrow(loading, 'orchestrator-stopped-loading')
  for (const [i, p] of pages.entries()) {
    await p.bringToFront()
    await p.getByText(/The orchestrator does not answer since \d\d:\d\d:\d\d UTC, \d+ s\./).waitFor()
    console.log(`${paths[i]}: said after ${((Date.now() - at) / 1000).toFixed(1)} s`)
    await p.getByText('Nothing is lost: the nodes continue').waitFor()
    await noRawTexts(p)
    await clean(p)
    await shotNarrow(p, `orchestrator-stopped-${i}`)
  }
  // A command that waits says for what, and since when.
  await until('the command says what it waits for', () => said.includes('does not answer'))
  expect(said).toMatch(
    /^since \d\d:\d\d:\d\d UTC: the orchestrator at http:\S+ does not answer; nothing is lost: the nodes continue and keep what they measure; this command waits for its answer$/m,
  )
  thaw()
  expect(await code).toBe(0)
  expect(said).toMatch(/the orchestrator is back after \d+ s/)
  for (const p of pages) {
    await p.bringToFront()
    await p.getByText('does not answer since').waitFor({ state: 'detached' })
  }
  await pages[1]!.getByRole('link', { name: 'frozen', exact: true }).waitFor()
  release()
  await loading.getByRole('link', { name: 'frozen', exact: true }).waitFor()
  troubles.length = 0 // failed calls are logged by the browser itself
})

test('while the database is stopped, every page says so and goes on by itself', async () => {
  const pages = await Promise.all(['/', '/runs', '/plans'].map((p) => s.open(p)))
  for (const p of pages) await p.locator('h1').waitFor()
  const at = Date.now()
  freeze(s.pids('database'))
  for (const [i, p] of pages.entries()) {
    await p.bringToFront()
    await p.getByText(/The orchestrator’s database does not answer since \d\d:\d\d:\d\d UTC, \d+ s\./).waitFor()
    console.log(`page ${i}: said after ${((Date.now() - at) / 1000).toFixed(1)} s`)
    await noRawTexts(p)
    await shotNarrow(p, `database-stopped-${i}`)
  }
  thaw()
  for (const p of pages) {
    await p.bringToFront()
    await p.getByText('does not answer since').waitFor({ state: 'detached' })
  }
  await pages[1]!.getByRole('link', { name: 'frozen', exact: true }).waitFor()
  troubles.length = 0
})

test('while the database takes no changes, every page says so and goes on by itself', async () => {
  const pages = await Promise.all(['/', '/runs', '/plans'].map((p) => s.open(p)))
  for (const p of pages) await p.locator('h1').waitFor()
  const conf = `${s.data}/postgres/postgresql.auto.conf`
  const before = readFileSync(conf, 'utf8')
  const set = (text: string) => {
    writeFileSync(conf, text)
    process.kill(Number(readFileSync(`${s.data}/postgres/postmaster.pid`, 'utf8').split('\n')[0]), 'SIGHUP')
  }
  set(`${before}default_transaction_read_only = on\n`)
  try {
    // Somebody wants to store something.
    await expect
      .poll(async () => {
        const r = await fetch(`${s.url}/linktrial.v1.LibraryService/SavePlan`, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify({ name: `kept-${Date.now()}`, text: Buffer.from('name: kept\n').toString('base64') }),
        })
        return r.status
      })
      .toBe(503)
    const at = Date.now()
    for (const [i, p] of pages.entries()) {
      await p.bringToFront()
      await p
        .getByText(
          /The orchestrator’s database is set to read-only and takes no changes since \d\d:\d\d:\d\d UTC, \d+ s\./,
        )
        .waitFor()
      await p.getByText('They deliver it when that is repaired').waitFor()
      console.log(`page ${i}: said after ${((Date.now() - at) / 1000).toFixed(1)} s`)
      await noRawTexts(p)
      await clean(p)
      await shotNarrow(p, `database-read-only-${i}`)
    }
  } finally {
    set(before)
  }
  for (const p of pages) {
    await p.bringToFront()
    await p.getByText('takes no changes').waitFor({ state: 'detached' })
  }
  troubles.length = 0
})
