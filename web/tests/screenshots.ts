// Pictures of every page at every width in every theme, with campaigns that were really run, to look
// at: make screenshots. Each view has a contact sheet, and some a PDF as printed; findings.md lists what a program can see: what
// reaches beyond the window, texts that are cut without a hint, and what axe finds.
//
//   LINKTRIAL_SHOTS   the folder (default: build/screenshots)
//   LINKTRIAL_VIEWS   only views whose name matches this expression
//   LINKTRIAL_THEMES  light,dark,sun
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { axe, root, shots as asked, station, type Station, troubles, until } from './harness'

const shots = asked ?? join(root, 'build/screenshots')
const widths = [1366, 1024, 768, 390]
const themes = (process.env.LINKTRIAL_THEMES ?? 'light,dark,sun').split(',')
const chosen = new RegExp(process.env.LINKTRIAL_VIEWS ?? '')
/** Pages that people print: also as PDF. */
const paper =
  /^(overview-running|run|run-running|results|results-table|compare|compare-figure|attempt|map|fleet-node|radios)$/
/** A taller page says nothing new further down. */
const tallest = 2600

const plan = (name: string, more: string) => `name: ${name}
title: Screenshots
radio: prc-117g-anw2c
topology: vip-lot
order: fixed
seed: 7
limits: {connect: 10s, transfer: 60s, attempts: 2}
control: out-of-band
sample_interval: 100ms
${more}`
const treatments = `treatments:
  - {name: tcp-cubic, label: TCP CUBIC, protocol: tcp, options: {congestion: cubic}}
  - {name: tcp-reno, label: TCP Reno, protocol: tcp, options: {congestion: reno}}
  - {name: udt, label: UDT, protocol: udt}
  - {name: sctp, label: SCTP, protocol: sctp}
  - {name: haul, label: Haul, protocol: haul}
  - {name: mockets, label: Mockets, protocol: mockets, missing: "it is not built yet"}
`
const plans = {
  meadow: plan('meadow', `topology: [vip-lot, flag-pole]\nsize: 128 KiB\niterations: 4\n${treatments}`).replace(
    'topology: vip-lot\n',
    '',
  ),
  losses: plan(
    'losses',
    `size: 64 KiB
iterations: 3
treatments:
  - {name: tcp-cubic, label: TCP CUBIC, protocol: tcp, options: {congestion: cubic}}
  - {name: quic, label: QUIC, protocol: quic}
sweep:
  - {name: loss, set: channel.loss, values: [0, 0.01, 0.5]}
published:
  source: "somewhere, Table 1"
  rows:
    - {where: {loss: 0}, topology: vip-lot, radio: lttcp-on-off, treatment: tcp-cubic, n: 10, average: 900, maximum: 1000, minimum: 800, sd: 40}
`,
  )
    .replace('prc-117g-anw2c', 'lttcp-on-off')
    .replace('transfer: 60s', 'transfer: 4s'),
  voice: plan(
    'voice',
    `size: 64 KiB
iterations: 2
treatments:
  - {name: tcp-cubic, label: TCP CUBIC, protocol: tcp, options: {congestion: cubic}}
  - {name: voice, label: Voice, protocol: probe, dscp: EF, options: {pattern: voip-g711, pause: 0s}}
probes:
  - {treatment: voice, alone: 1s}
`,
  ),
  convoy: plan('convoy', `size: 512 KiB\niterations: 40\n${treatments}`),
}

let s: Station
let folder: string
const ids: Record<string, string> = {}
const findings: string[] = []

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
async function start(name: keyof typeof plans, as: string = name): Promise<string> {
  const r = await call<{ campaignId?: string; problems?: unknown[] }>('OperatorService/StartPlan', {
    file: `${name}.yaml`,
    text: base64(plans[name]),
    name: as,
    moves: 'MOVES_NONE',
  })
  if (!r.campaignId) throw new Error(`${name} is refused: ${JSON.stringify(r.problems)}`)
  return (ids[as] = r.campaignId)
}
async function ended(campaign: string) {
  await until(
    `${campaign} has ended`,
    async () => {
      const { runs } = await call<{ runs: { state: string }[] }>('OperatorService/ListRuns', { campaignId: campaign })
      return runs.every((r) => /COMPLETED|ABORTED|STOPPED/.test(r.state))
    },
    900,
  )
}

beforeAll(async () => {
  mkdirSync(shots, { recursive: true })
  folder = mkdtempSync(join(tmpdir(), 'linktrial-screenshots-'))
  s = await station('pages')
  await s.killServe()
  s.bench('large', '--keep', '--runs', '25', '--samples', '20')
  await s.serve()
  await s.labUp('--radio', 'prc-117g-anw2c', '--topology', 'vip-lot')
  await start('meadow')
  await start('losses')
  await start('losses', 'losses again')
  await start('voice')
  for (const id of Object.values(ids)) await ended(id)
  for (const name of ['meadow', 'convoy'] as const)
    await call('LibraryService/SavePlan', { name, text: base64(plans[name]) })
  const at = (hours: number) => new Date(Date.now() + hours * 3600_000).toISOString()
  await call('LibraryService/Schedule', { plan: 'meadow', at: at(2), name: 'evening' })
  await call('LibraryService/Schedule', { plan: 'quickstart', at: at(20), name: 'tomorrow' })
  await start('convoy')
  await start('meadow', 'behind')
})
afterAll(async () => {
  writeFileSync(join(shots, 'findings.md'), `${findings.join('\n') || 'nothing'}\n`)
  await s?.stop()
  if (folder) rmSync(folder, { recursive: true, force: true })
})

/** What reaches beyond the window, and texts that are cut without a hint that has them whole. */
const seen = (page: Page) =>
  page.evaluate(() => {
    const of = (e: Element) =>
      `${e.tagName.toLowerCase()}.${e.className} “${(e.textContent ?? '').trim().slice(0, 40)}”`.replace(/\s+/g, ' ')
    const out: string[] = []
    if (document.documentElement.scrollWidth > window.innerWidth)
      out.push(`scrolls sideways, ${document.documentElement.scrollWidth} wide`)
    for (const e of document.querySelectorAll<HTMLElement>('main *, header *, dialog *')) {
      if (!e.checkVisibility() || !e.childNodes.length) continue
      const style = getComputedStyle(e)
      const direct = [...e.childNodes].some((n) => n.nodeType === Node.TEXT_NODE && n.textContent?.trim())
      if (!direct || e.closest('.unseen, [title], .cm-editor, pre')) continue
      if (style.overflowX !== 'visible' && style.overflowX !== 'auto' && e.scrollWidth > e.clientWidth + 1)
        out.push(`cut: ${of(e)}`)
      const box = e.getBoundingClientRect()
      if (style.position !== 'absolute' && box.width > 0 && box.width < 14 && (e.textContent ?? '').length > 6)
        out.push(`squeezed: ${of(e)}`)
    }
    return out.slice(0, 6)
  })

async function theme(page: Page, name: string) {
  await page.evaluate((newValue) => {
    const key = 'linktrial-theme'
    localStorage.setItem(key, newValue)
    window.dispatchEvent(new StorageEvent('storage', { key, newValue, storageArea: localStorage }))
  }, name)
  await page.waitForFunction((t) => document.documentElement.dataset.theme === t, name)
}

/** One view in all themes and widths, and their contact sheet. */
async function picture(page: Page, name: string) {
  const images: { theme: string; width: number; png: Buffer }[] = []
  for (const t of themes) {
    await theme(page, t)
    for (const width of widths) {
      await page.setViewportSize({ width, height: width < 600 ? 844 : 768 })
      await page.evaluate(() => document.querySelector('dialog[open]') || window.scrollTo(0, 0))
      await page.waitForTimeout(300) // figures and tables follow the window's size
      const height = await page.evaluate(() => document.documentElement.scrollHeight)
      const modal = await page.evaluate(() => !!document.querySelector('dialog[open]'))
      const png = await page.screenshot({
        path: join(shots, `${name}-${t}-${width}.png`),
        animations: 'disabled',
        ...(modal || height <= tallest
          ? { fullPage: !modal }
          : { fullPage: true, clip: { x: 0, y: 0, width, height: tallest } }),
      })
      images.push({ theme: t, width, png })
      if (t === themes[0]) for (const f of await seen(page)) findings.push(`- ${name}, ${width}: ${f}`)
      if (width === 1366 || (width === 390 && t === themes[0]))
        for (const f of await axe(page)) findings.push(`- ${name}, ${t}, ${width}: axe: ${f}`)
    }
  }
  if (paper.test(name)) {
    await page.setViewportSize({ width: 1366, height: 768 })
    await page.pdf({ path: join(shots, `${name}.pdf`), format: 'A4', preferCSSPageSize: true })
  }
  const sheet = await page.context().newPage()
  await sheet.setViewportSize({ width: 1790, height: 400 })
  for (const t of themes) {
    const row = images.filter((i) => i.theme === t)
    await sheet.setContent(
      `<body style="margin:0;background:#888;font:12px sans-serif"><div>${name}, ${t}</div><div style="display:flex;gap:6px;align-items:start;max-height:1500px;overflow:hidden">${row
        .map((i) => `<img width="${i.width / 2}" src="data:image/png;base64,${i.png.toString('base64')}">`)
        .join('')}</div></body>`,
    )
    await sheet.waitForFunction(() => [...document.images].every((i) => i.complete))
    await sheet.screenshot({ path: join(shots, `sheet-${name}-${t}.png`), fullPage: true })
  }
  await sheet.close()
}

interface View {
  name: string
  path: string
  ready: string
  prepare?: (page: Page) => Promise<unknown>
}
async function take(views: View[], on: Page) {
  for (const v of views.filter((v) => chosen.test(v.name))) {
    const page = await s.open('/account', { in: on })
    try {
      page.setDefaultTimeout(45_000)
      await page.setViewportSize({ width: 1366, height: 768 })
      await page.goto(s.url + v.path.replace(/<([\w ]+)>/g, (_, name: string) => ids[name]!))
      await page.locator(v.ready).first().waitFor()
      await page.waitForFunction(
        () => ![...document.querySelectorAll('main [aria-busy="true"]')].some((e) => e.checkVisibility()),
      )
      await v.prepare?.(page)
      await picture(page, v.name)
    } catch (e) {
      findings.push(`- ${v.name}: no picture: ${String(e).split('\n')[0]}`)
    } finally {
      await page.close()
    }
  }
}
const button = (name: string | RegExp) => (page: Page) => page.getByRole('button', { name }).first().click()
const drawn = '[data-drawn]'

test('while a campaign runs', async () => {
  const on = await s.open('/')
  await take(
    [
      { name: 'overview-running', path: '/', ready: 'progress' },
      { name: 'run-running', path: '/runs/<convoy>', ready: 'button[data-trial].succeeded' },
      { name: 'run-trial', path: '/runs/<convoy>?trial=0', ready: 'button[data-trial].succeeded' },
      {
        name: 'run-exclude',
        path: '/runs/<convoy>?trial=0',
        ready: 'button[data-trial].succeeded',
        prepare: button('Exclude …'),
      },
      {
        name: 'run-abort',
        path: '/runs/<convoy>',
        ready: 'button[data-trial].succeeded',
        prepare: button(/Abort this run/),
      },
      { name: 'results-running', path: '/results?ids=<convoy>', ready: drawn },
    ],
    on,
  )
  await on.close()
})

test('while a node is lost', async () => {
  const on = await s.open('/')
  const stopped = s.pids({ agent: 'relay' })
  for (const p of stopped) process.kill(p, 'SIGSTOP')
  try {
    await on
      .getByText(/No contact with relay/)
      .first()
      .waitFor()
    await take(
      [
        { name: 'overview-lost', path: '/', ready: '[aria-label="Needs attention"] li' },
        { name: 'run-lost', path: '/runs/<convoy>', ready: '.banner' },
        { name: 'runs-lost', path: '/runs', ready: 'tbody tr' },
        { name: 'results-lost', path: '/results?ids=<convoy>', ready: '[aria-label="Needs attention"] li' },
        { name: 'fleet-lost', path: '/fleet', ready: 'article' },
      ],
      on,
    )
  } finally {
    for (const p of stopped) process.kill(p, 'SIGCONT')
  }
  await call('OperatorService/AbortCampaign', { campaignId: ids.behind, reason: 'it rains' })
  await call('OperatorService/AbortCampaign', { campaignId: ids.convoy, reason: 'a vehicle broke down' })
  await ended(ids.convoy!)
  await on.close()
})

test('after the campaigns', async () => {
  const on = await s.open('/')
  const compare = '/results?ids=<losses>&ids=<losses again>'
  await take(
    [
      { name: 'overview', path: '/', ready: 'table.rows tbody tr' },
      {
        name: 'fleet',
        path: '/fleet',
        ready: 'article',
        prepare: async (page) => {
          await page.getByRole('button', { name: 'Start preflight' }).click()
          await page.getByText(/\d+ of \d+ checks passed/).waitFor()
          await page.getByRole('button', { name: 'Show all checks' }).click()
        },
      },
      { name: 'fleet-node', path: '/fleet?find=relay', ready: 'article' },
      { name: 'identities', path: '/fleet/identities', ready: 'main p' },
      { name: 'plans', path: '/plans', ready: 'tbody tr' },
      { name: 'plans-new', path: '/plans', ready: 'tbody tr', prepare: button('New plan') },
      { name: 'plan', path: '/plans/quickstart', ready: '.cm-content' },
      { name: 'plan-own', path: '/plans/meadow', ready: '.cm-content' },
      { name: 'plan-start', path: '/plans/meadow', ready: '.cm-content', prepare: button(/^Start now/) },
      { name: 'plan-schedule', path: '/plans/meadow', ready: '.cm-content', prepare: button(/^Schedule/) },
      { name: 'runs', path: '/runs', ready: 'tbody tr' },
      { name: 'run', path: '/runs/<meadow>', ready: 'button[data-trial]' },
      { name: 'run-failures', path: '/runs/<losses>?run=<losses>-3', ready: 'button[data-trial]' },
      { name: 'run-aborted', path: '/runs/<convoy>', ready: 'button[data-trial]' },
      { name: 'run-large', path: '/runs/large', ready: 'button[data-trial]' },
      { name: 'choose', path: '/results', ready: 'tbody tr' },
      { name: 'results', path: '/results?ids=<meadow>', ready: drawn },
      ...['cumulative', 'cdf', 'delivery', 'iterations', 'sequence'].map((tab) => ({
        name: `results-${tab}`,
        path: `/results?ids=<meadow>&tab=${tab}`,
        ready: drawn,
      })),
      { name: 'results-table', path: '/results?ids=<meadow>&tab=table', ready: 'tbody tr' },
      { name: 'results-trials', path: '/results?ids=<losses>&tab=trials', ready: 'tbody tr' },
      { name: 'results-sweep', path: '/results?ids=<losses>&tab=sweep', ready: drawn },
      { name: 'results-download', path: '/results?ids=<meadow>', ready: drawn, prepare: button('Download data') },
      { name: 'results-large', path: '/results?ids=large', ready: drawn },
      { name: 'results-large-table', path: '/results?ids=large&tab=table', ready: 'tbody tr' },
      { name: 'results-probes', path: '/results?ids=<voice>&tab=table', ready: 'tbody tr' },
      { name: 'compare', path: `${compare}&tab=differences`, ready: 'tbody tr' },
      { name: 'compare-figure', path: compare, ready: drawn },
      { name: 'attempt', path: '/results/attempt/<meadow>-1/0', ready: drawn },
      { name: 'attempt-failed', path: '/results/attempt/<losses>-3/0', ready: 'main h1' },
      { name: 'map', path: '/map', ready: 'svg' },
      { name: 'radios', path: '/profiles?radio=prc-117g-anw2c', ready: 'article h2' },
      { name: 'protocols', path: '/protocols', ready: 'main h2, main h3' },
      { name: 'approvals', path: '/protocols/approvals', ready: 'main table, main p' },
      { name: 'lab', path: '/lab', ready: 'main h2, main .box' },
      { name: 'not-found', path: '/no/such/page', ready: 'main a' },
    ],
    on,
  )
  await on.close()
})

test('where people log in', async () => {
  const main = s
  const secret = 'correct horse battery'
  s = await station('pageslogin', '--tls')
  try {
    s.linktrialWith(`${secret}\n`, 'user', 'add', 'anna', '--role', 'admin', '--password-stdin')
    s.linktrialWith(`${secret}\n`, 'login', 'anna', '--password-stdin')
    for (const [name, role] of [
      ['dirk', 'director'],
      ['vera', 'viewer'],
    ] as const)
      s.linktrialWith(`${secret}\n`, 'user', 'add', name, '--role', role, '--password-stdin')
    const out = await s.open('/login')
    await take([{ name: 'login', path: '/login', ready: 'h1' }], out)
    const on = await s.open('/')
    await on.getByLabel('Name', { exact: true }).fill('anna')
    await on.getByLabel('Password', { exact: true }).fill(secret)
    await on.getByRole('button', { name: 'Log in' }).click()
    await on.getByRole('link', { name: 'Account of anna' }).waitFor()
    await on.goto(`${s.url}/fleet/identities`)
    for (const node of ['client', 'server']) {
      await on.getByRole('button', { name: 'New token', exact: true }).click()
      await on.getByLabel('Node', { exact: true }).fill(node)
      await on.getByRole('button', { name: 'Create' }).click()
      const token = await on.getByLabel('The token', { exact: true }).inputValue()
      writeFileSync(join(folder, node), `${token}\n`)
      await on.getByRole('button', { name: 'Done' }).click()
    }
    const place = ['--radio-address', '127.0.0.1', '--device', 'lo', '--token-file', join(folder, 'client')]
    s.start('agent', '--name', 'client', '--role', 'client', '--radio', 'mpu4', ...place)
    await on
      .getByRole('row', { name: /^client.*connected/ })
      .first()
      .waitFor()
    await take(
      [
        { name: 'users', path: '/users', ready: 'tbody tr' },
        { name: 'users-add', path: '/users', ready: 'tbody tr', prepare: button('Add a user') },
        { name: 'notifications', path: '/notifications', ready: 'ol.told li, .hint' },
        { name: 'notifications-sent', path: '/notifications?show=sent', ready: 'main .new' },
        { name: 'audit', path: '/audit', ready: 'tbody tr' },
        { name: 'account', path: '/account', ready: 'h2' },
        { name: 'account-token', path: '/account', ready: 'h2', prepare: button('New token') },
        { name: 'identities-tls', path: '/fleet/identities', ready: 'tbody tr' },
        { name: 'identities-token', path: '/fleet/identities', ready: 'tbody tr', prepare: button('New token') },
        { name: 'overview-first', path: '/', ready: 'ol' },
        { name: 'fleet-tls', path: '/fleet', ready: 'article' },
        { name: 'approvals-tls', path: '/protocols/approvals', ready: 'main table, main p' },
        { name: 'radios-tls', path: '/profiles?radio=mpu4', ready: 'article h2' },
      ],
      on,
    )
  } finally {
    await s.stop()
    s = main
  }
})

test('pages throw nothing', () => {
  for (const t of troubles) findings.push(`- thrown: ${t}`)
  console.log(
    `${shots}: ${readFileSync(import.meta.filename, 'utf8').match(/name: '/g)!.length} views\n${findings.join('\n')}`,
  )
  expect(troubles).toEqual([])
})
