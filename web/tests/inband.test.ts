// What people see of a run with in-band control: its nodes are silent while a trial runs,
// which is no fault, and their records come in the windows between trials.
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { clean, shotNarrow, type Station, station, troubles, until } from './harness'

let s: Station
beforeAll(async () => {
  s = await station('inband')
  await s.labUp('--topology', 'vip-lot')
})
afterAll(() => s?.stop())

async function start(): Promise<string> {
  const text = `name: in-band
radio: prc-117g-anw2c
topology: vip-lot
size: 256 KiB
treatments:
  - {name: tcp, label: TCP, protocol: tcp}
  - {name: voice, label: Voice, protocol: probe}
probes: [{treatment: voice, alone: 5s}]
iterations: 100
seed: 1
control: in-band
control_share: 50 %
limits: {connect: 10s, transfer: 60s}
`
  const r = await fetch(`${s.url}/linktrial.v1.OperatorService/StartPlan`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ file: 'in-band.yaml', text: Buffer.from(text).toString('base64') }),
  })
  return ((await r.json()) as { campaignId: string }).campaignId
}

/** What pages must not say while nothing is wrong. */
const alarms = /no contact|no node is connected|journal.*incomplete/i

/** Looks at pages all the time until done says so, and returns every text that is an alarm. */
async function watch(pages: Record<string, Page>, done: () => Promise<boolean>): Promise<string[]> {
  const found = new Set<string>()
  await until(
    'what is waited for',
    async () => {
      for (const [name, page] of Object.entries(pages))
        for (const line of (await page.locator('body').innerText()).split('\n'))
          if (alarms.test(line)) found.add(`${name}: ${line}`)
      return done()
    },
    170,
  )
  return [...found]
}

test('silent nodes are no alarm, probes that have ended are not invalid, and an abort is told as one', async () => {
  const campaign = await start()
  const run = await s.open(`/runs/${campaign}`)
  const pages = { overview: await s.open('/'), fleet: await s.open('/fleet'), run }
  const cells = run.locator('button[data-trial]')
  const kinds = () => cells.evaluateAll((all) => all.map((c) => c.className).join(' '))
  await run.locator('button[data-trial].succeeded').nth(3).waitFor({ timeout: 170_000 })

  // Two more trials of each treatment, and silence seen on the way.
  let silent = false
  const before = await run.locator('button[data-trial].succeeded').count()
  expect(
    await watch(pages, async () => {
      silent ||= /silent, in-band/.test(await pages.fleet.locator('body').innerText())
      expect(await kinds(), 'trials that wait for their journals').not.toMatch(/invalid|failed/)
      return silent && (await run.locator('button[data-trial].succeeded').count()) >= before + 4
    }),
  ).toEqual([])
  await shotNarrow(run, 'in-band-run')
  await shotNarrow(pages.fleet, 'in-band-fleet')
  await clean(pages.overview)

  // From the command until the nodes have ended their parts it is neither running nor aborted.
  await run.getByRole('button', { name: 'Abort this run …' }).click()
  await run.getByLabel('Reason').fill('rain')
  await run.getByRole('dialog').getByRole('button', { name: 'Abort the run' }).click()
  await run.getByText('aborting', { exact: true }).first().waitFor()
  const began = Date.now()
  expect(
    await watch(pages, async () => {
      const over = await run.getByText('aborted', { exact: true }).first().isVisible()
      if (!over) expect(await run.getByText('running', { exact: true }).count(), 'it is being aborted').toBe(0)
      return over
    }),
  ).toEqual([])
  console.log(`in-band: aborted ${((Date.now() - began) / 1000).toFixed(1)} s after the command`)
  await clean(run)
  await shotNarrow(run, 'in-band-aborted')
  expect(troubles).toEqual([])
})
