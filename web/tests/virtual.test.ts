// A campaign in virtual time as pages show it, while its trials run in guests and while its
// journals are stored. The rehearsal's part is played here: no guest has to run for it.
import { generateKeyPairSync, sign } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { bin, clean, shotNarrow, type Station, station, troubles, until } from './harness'

let s: Station
beforeAll(async () => {
  s = await station('virtual')
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
const base64 = (text: string) => Buffer.from(text).toString('base64')
/** Sheets name the version that the catalog has. */
const tcp = /^version: "?([\d.]+)/m.exec(readFileSync(join(bin, 'drivers/tcp/driver.yaml'), 'utf8'))![1]
const roles = ['client', 'relay', 'server']
/** The lab's key: a rehearsal has one of its own, with which it vouches for its guests. */
const lab = generateKeyPairSync('ed25519')
const labKey = lab.publicKey.export({ type: 'spki', format: 'der' }).subarray(-32)
async function register(incarnation: string) {
  for (const [i, role] of roles.entries()) {
    const name = `virtual-${role}`
    const address = `10.77.0.${i + 1}`
    const statement = JSON.stringify({ kind: 'virtual', subject: name, detail: incarnation, role, address })
    await call('AgentService/Register', {
      name,
      role,
      version: 'test',
      protocol: 2,
      host: 'guest',
      kernel: '6.12',
      emulated: true,
      virtual: true,
      radioAddress: address,
      incarnation,
      drivers: [{ name: 'tcp', version: tcp, choices: { congestion: 'cubic,reno' } }],
      labKey: `ed25519:${labKey.toString('base64')}`,
      labSignature: sign(null, Buffer.from(`linktrial lab v1\0${statement}`), lab.privateKey).toString('base64'),
    })
  }
}
interface Run {
  id: string
  state: string
  sheetHash: string
}
const runsOf = async (campaignId: string) =>
  (await call<{ runs: Run[] }>('OperatorService/ListRuns', { campaignId })).runs

test('a campaign in virtual time is stored, has no commands then, and leaves no nodes', async () => {
  await register('first')
  const text = `name: virtual
radio: prc-117g-anw2c
topology: vip-lot
size: [64 KiB, 128 KiB, 256 KiB]
treatments:
  - {name: tcp-cubic, label: TCP CUBIC, protocol: tcp, options: {congestion: cubic}}
iterations: 400
seed: 1
limits: {connect: 10s, transfer: 600s}
`
  const started = await call<{ campaignId: string; runIds: string[]; problems?: unknown[] }>(
    'OperatorService/StartPlan',
    { file: 'virtual.yaml', text: base64(text), virtual: true },
  )
  expect(started.problems ?? []).toEqual([])
  const { campaignId } = started
  const page = await s.open(`/runs/${campaignId}`)
  const status = page.getByRole('region', { name: 'State of the run' })
  await status.getByText('running in virtual time').waitFor()
  expect(await status.getByRole('button', { name: 'Pause' }).count()).toBe(0)

  // The first journal arrives: all trials are over.
  const run = (await runsOf(campaignId)).find((r) => r.id === started.runIds[0])!
  const record = (seq: number, type: string, body: object) => ({
    seq,
    json: base64(
      JSON.stringify({
        seq,
        run: run.id,
        node: 'virtual-client',
        role: 'client',
        at: '2000-01-01T00:00:00Z',
        type,
        body,
      }),
    ),
  })
  await call('AgentService/Deliver', {
    name: 'virtual-client',
    runId: run.id,
    records: [
      record(1, 'run-started', { sheet_hash: run.sheetHash, version: 'test', trials: 400 }),
      record(2, 'attempt-started', {
        trial: 0,
        attempt: 1,
        iteration: 1,
        treatment: 'tcp-cubic',
        transfers: ['00112233445566778899aabbccddeeff'],
      }),
    ],
  })
  await status.getByText('storing', { exact: true }).waitFor()
  await status.getByText('0 of 3 runs, 0 of 1200 trials').waitFor()
  for (const name of [/Pause/, /Abort/]) expect(await status.getByRole('button', { name }).count()).toBe(0)
  expect(await status.innerText()).not.toMatch(/about .* (d|h|min|s)\b|ends about/)
  await clean(page)
  await shotNarrow(page, 'virtual-storing')

  // One line of the overview, not one for each run that waits.
  const overview = await s.open('/')
  const line = overview.getByRole('region', { name: 'Running now' }).getByRole('listitem')
  await line.getByText('storing', { exact: true }).waitFor()
  expect(await line.count()).toBe(1)
  expect(await line.innerText()).not.toContain('left')
  await shotNarrow(overview, 'virtual-storing-overview')

  expect(await page.locator('.banner').count(), 'nobody misses such nodes').toBe(0)
  await call('OperatorService/AbortCampaign', { campaignId, reason: 'the test has ended' })
  await until('the campaign has ended', async () => (await runsOf(campaignId)).every((r) => /ABORTED/.test(r.state)))
  await overview.goto(`${s.url}/fleet`)
  await overview.getByText('No node has connected yet').waitFor()
  await until('nodes are gone', async () => !(await call<{ nodes?: unknown[] }>('OperatorService/ListNodes', {})).nodes)

  // The next rehearsal does not have to wait until these nodes count as gone.
  await register('second')
  expect(troubles).toEqual([])
})
