// Runs in a browser, live: the matrix, the lines, the journal, orders, and
// what the page does when an orchestrator or a control link is away.
import type { Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { clean, scriptBytes, shot, shotBoth, type Station, station, troubles, until } from './harness'

let s: Station
beforeAll(async () => {
  s = await station('run')
  await s.labUp('--topology', 'vip-lot')
})
afterAll(() => s?.stop())

async function call<T>(method: string, body: object): Promise<T> {
  const r = await fetch(`${s.url}/linktrial.v1.${method}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  if (!r.ok) throw new Error(`${method}: ${r.status} ${await r.text()}`)
  return (await r.json()) as T
}

interface Options {
  iterations: number
  size?: string
  transfer?: string
  more?: string
  topology?: string
  treatments?: string
}
const two = `  - {name: tcp-cubic, label: TCP CUBIC, protocol: tcp, options: {congestion: cubic}}
  - {name: udt, label: UDT, protocol: udt}`

async function start(name: string, o: Options, moves?: string): Promise<string> {
  const text = `name: ${name}
radio: prc-117g-anw2c
topology: ${o.topology ?? 'vip-lot'}
size: ${o.size ?? '64 KiB'}
treatments:
${o.treatments ?? two}
iterations: ${o.iterations}
seed: 1
limits: {connect: 10s, transfer: ${o.transfer ?? '60s'}}
sample_interval: 100ms
${o.more ?? ''}`
  const r = await call<{ campaignId?: string; problems?: unknown[] }>('OperatorService/StartPlan', {
    file: `${name}.yaml`,
    text: Buffer.from(text).toString('base64'),
    moves,
  })
  if (!r.campaignId) throw new Error(`the plan was refused: ${JSON.stringify(r.problems)}`)
  return r.campaignId
}
const state = (campaign: string) =>
  call<{ runs: { id: string; state: string; trialsEnded?: number; paused?: boolean }[] }>('OperatorService/ListRuns', {
    campaignId: campaign,
  })
const ended = (state: string) => /COMPLETED|ABORTED|STOPPED/.test(state)
const over = async (campaign: string) => (await state(campaign)).runs.every((r) => ended(r.state))
// What a failed test leaves open would hold the nodes for the next one.
afterEach(async () => {
  const { runs } = await call<{ runs?: { campaignId: string; state: string }[] }>('OperatorService/ListRuns', {})
  for (const campaignId of new Set(runs?.filter((r) => !ended(r.state)).map((r) => r.campaignId))) {
    await call('OperatorService/AbortCampaign', { campaignId, reason: 'the test has ended' })
    await until('the campaign has ended', () => over(campaignId))
  }
})
const cell = (page: Page, trial: number) => page.locator(`button[data-trial="${trial}"]`)
const kinds = (page: Page) =>
  page
    .locator('button[data-trial]')
    .evaluateAll((all) => all.map((b) => [...b.classList].find((c) => c !== 'cell' && c !== 'selected') ?? ''))

test('before the first run the page says what to do', async () => {
  const page = await s.open('/runs')
  await page.getByText('No run yet').waitFor()
  await clean(page)
  await shot(page, 'runs-empty')
})

test('a run fills in: matrix, moving lines, journal, time left', async () => {
  const campaign = await start('live', { iterations: 3, size: '512 KiB' })
  const page = await s.open(`/runs/${campaign}`)
  await page.getByText(/ends about/).waitFor()
  await page.locator('button[data-trial].running').waitFor()
  await page.getByRole('img', { name: /Throughput and congestion window: TCP CUBIC: [\d.]+ KB\/s, window/ }).waitFor()
  await expect.poll(() => page.locator('.line').count()).toBeGreaterThan(3)
  await page.locator('button[data-trial="1"].succeeded').waitFor({ timeout: 170_000 })
  await page.locator('button[data-trial].running').waitFor()
  await clean(page)
  await shotBoth(page, 'run-live')
  await page.getByLabel('Find in the journal').fill('attempt')
  await expect.poll(() => page.url()).toContain('find=attempt')
  await page.getByText('completed', { exact: true }).waitFor({ timeout: 170_000 })
  expect(await kinds(page)).toEqual(Array(6).fill('succeeded'))

  await cell(page, 0).focus()
  await page.keyboard.press('ArrowDown')
  await page.keyboard.press('ArrowRight')
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: 'Iteration 2, UDT' }).waitFor()
  expect(page.url()).toContain('trial=3')
  const link = page.getByRole('link', { name: 'Open trial' })
  expect(await link.getAttribute('href')).toMatch(/^\/results\/attempt\/[^/]+\/3\?attempt=1$/)
  expect(await page.getByRole('link', { name: 'Results of the campaign' }).getAttribute('href')).toBe(
    `/results?ids=${campaign}`,
  )
  expect(troubles).toEqual([])
})

test('people give commands: pause, resume, skip, repeat, mark, abort', async () => {
  const campaign = await start('orders', { iterations: 12, size: '256 KiB' })
  const page = await s.open(`/runs/${campaign}`)
  await cell(page, 1).and(page.locator('.succeeded')).waitFor({ timeout: 170_000 })
  await page.getByRole('button', { name: 'Pause', exact: true }).click()
  await page.getByText('paused', { exact: true }).waitFor({ timeout: 170_000 })
  await page.getByText('no end time while it is paused or waiting').waitFor()
  await until('nothing runs', async () => (await page.locator('button[data-trial].running').count()) === 0)
  await clean(page)
  await shotBoth(page, 'run-paused')

  // While it is held: one to be skipped, one to be repeated, one that must not count.
  await cell(page, 20).click()
  await page.getByRole('button', { name: 'Skip', exact: true }).click()
  await cell(page, 0).click()
  await page.getByRole('button', { name: 'Repeat', exact: true }).click()
  await page.getByRole('button', { name: 'Exclude …' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Exclude' }).click()
  await page.getByText('Give a reason').waitFor()
  await page.getByLabel('Reason').fill('a truck stood in the way')
  await page.getByLabel('Your name, for the record').fill('Ada')
  await page.getByRole('dialog').getByRole('button', { name: 'Exclude' }).click()
  await cell(page, 0).and(page.locator('.invalid')).waitFor()
  await page.getByText('Excluded: a truck stood in the way').waitFor()
  await clean(page)
  await shot(page, 'run-marked')
  const other = await s.open(`/runs/${campaign}?trial=0`)
  await other.getByText('Excluded: a truck stood in the way').waitFor()
  await other.getByRole('button', { name: 'Include again' }).click()
  await cell(page, 0).and(page.locator('.invalid')).waitFor({ state: 'detached' })
  await other.close()

  await page.getByRole('button', { name: 'Resume' }).click()
  await cell(page, 20).and(page.locator('.skipped')).waitFor({ timeout: 170_000 })
  await page.getByText(/Attempt 2:\s*✓ succeeded/).waitFor({ timeout: 170_000 })
  await page.getByRole('button', { name: 'Abort this run …' }).click()
  await page.getByLabel('Reason').fill('rain')
  await clean(page)
  await page.getByRole('dialog').getByRole('button', { name: 'Abort the run' }).click()
  await page.getByText('aborted', { exact: true }).first().waitFor({ timeout: 170_000 })
  await expect.poll(() => kinds(page)).toContain('not-run')
  await shot(page, 'run-aborted')
  expect(troubles).toEqual([])
})

test('the page lives through an orchestrator that goes away, and fills in', async () => {
  const campaign = await start('away', { iterations: 4, size: '384 KiB' })
  const page = await s.open(`/runs/${campaign}`)
  await cell(page, 1).and(page.locator('.succeeded')).waitFor({ timeout: 170_000 })
  await s.killServe()
  await page.getByText('The orchestrator does not answer since').waitFor()
  await page.getByText('Nothing is lost: the nodes continue').waitFor()
  expect(await cell(page, 1).getAttribute('class')).toContain('succeeded')
  await clean(page)
  await shot(page, 'run-orchestrator-away')
  await s.serve()
  await page.getByText('The orchestrator does not answer since').waitFor({ state: 'detached' })
  await page.getByText('completed', { exact: true }).waitFor({ timeout: 240_000 })
  expect(await kinds(page)).toEqual(Array(8).fill('succeeded'))
  troubles.length = 0 // failed calls are logged by the browser itself
})

test('a cut control link is named with its time, and the journal arrives later', async () => {
  const campaign = await start('cut', { iterations: 4, size: '384 KiB' })
  const page = await s.open(`/runs/${campaign}`)
  await cell(page, 1).and(page.locator('.succeeded')).waitFor({ timeout: 170_000 })
  s.linktrial('lab', 'control-link', 'client', 'down', '--name', 'webrun')
  try {
    await page
      .getByText(/No contact with client since/)
      .first()
      .waitFor({ timeout: 170_000 })
    await clean(page)
    await shotBoth(page, 'run-node-silent')
  } finally {
    s.linktrial('lab', 'control-link', 'client', 'up', '--name', 'webrun')
  }
  await page.locator('.banner').waitFor({ state: 'detached', timeout: 170_000 })
  await page.getByText('completed', { exact: true }).waitFor({ timeout: 240_000 })
  expect(await kinds(page)).toEqual(Array(8).fill('succeeded'))
})

test('nodes that have to move are waited for', async () => {
  const campaign = await start('moves', { iterations: 1, topology: '[vip-lot, flag-pole]' }, 'MOVES_CONFIRM')
  const page = await s.open(`/runs/${campaign}`)
  await page.getByText('The nodes have to be at').waitFor({ timeout: 170_000 })
  await page.getByRole('tab').nth(1).waitFor()
  await clean(page)
  await shotBoth(page, 'run-waiting')
  // The first place has to be taken too, before its run.
  await page.getByRole('button', { name: 'The nodes are in place: continue' }).click()
  await page.getByText('The nodes have to be at Flag Pole now.').waitFor({ timeout: 170_000 })
  // Who moved them says so where his node is.
  const fleet = await s.open('/fleet')
  await fleet.getByText('The nodes have to be at flag-pole now.').waitFor()
  await clean(fleet)
  await fleet.setViewportSize({ width: 390, height: 844 })
  await shot(fleet, 'phone-in-place', false)
  await fleet.getByRole('button', { name: 'The nodes are in place: continue' }).click()
  await until('both runs have ended', () => over(campaign), 240)
  await page.getByRole('tab').first().click()
  await expect.poll(() => page.url()).toContain('run=')
  await expect.poll(() => kinds(page)).toEqual(['succeeded', 'succeeded'])
})

// They go on for longer than the slowest browser looks; what follows the test ends them.
test('four flows at ten samples a second', async () => {
  const campaign = await start('flows', {
    iterations: 1,
    treatments: two.split('\n')[0],
    size: '1 MiB',
    transfer: '300s',
    more: 'flows:\n  - {count: 4, duration: 240s}\n',
  })
  const page = await s.open(`/runs/${campaign}`)
  await page.getByRole('img', { name: /flow 3, TCP CUBIC: [\d.]+ KB\/s/ }).waitFor({ timeout: 170_000 })
  const spoken = () => page.getByRole('img', { name: /Throughput/ }).getAttribute('aria-label')
  const before = await spoken()
  const frames = await page.evaluate(
    () =>
      new Promise<{ mean: number; p95: number; worst: number }>((done) => {
        const gaps: number[] = []
        let last = performance.now()
        const end = last + 6000
        const next = (now: number) => {
          gaps.push(now - last)
          last = now
          if (now < end) requestAnimationFrame(next)
          else {
            gaps.sort((a, b) => a - b)
            done({
              mean: (gaps.length * 1000) / gaps.reduce((a, b) => a + b, 0),
              p95: gaps[Math.floor(gaps.length * 0.95)]!,
              worst: gaps.at(-1)!,
            })
          }
        }
        requestAnimationFrame(next)
      }),
  )
  console.log(
    `live view, four flows: ${frames.mean.toFixed(1)} frames a second, 95 % of frames within ${frames.p95.toFixed(1)} ms, the longest ${frames.worst.toFixed(0)} ms`,
  )
  expect(await spoken()).not.toBe(before)
  const bytes = await scriptBytes(page)
  console.log(`live view: ${(bytes / 1024).toFixed(0)} KB of compressed scripts`)
  expect(bytes).toBeLessThan(500 * 1024)
  await shot(page, 'run-flows')
  for (const theme of ['dark', 'sun']) {
    const p = await s.open(`/runs/${campaign}?trial=0`, { theme })
    await p.getByRole('img', { name: /flow 3/ }).waitFor({ timeout: 170_000 })
    await clean(p)
    await shot(p, `run-${theme}`)
    await p.close()
  }
})

test('the list of runs, and one that does not exist', async () => {
  const page = await s.open('/runs')
  await page.getByRole('link', { name: 'moves', exact: true }).waitFor()
  await clean(page)
  await shotBoth(page, 'runs')
  await page.getByLabel('Find a campaign').fill('orders')
  await expect.poll(() => page.locator('tbody tr').count()).toBe(1)
  await page.goto(`${s.url}/runs/nothing`)
  await page.getByText('That did not work').waitFor()
  await shot(page, 'run-unknown')
  expect(troubles).toEqual([])
})
