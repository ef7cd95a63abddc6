// Every page, tab and export, opened with a campaign of every kind that a plan can express
// and with every outcome (e2e/kinds/README.md): no error, no value that is none, no panel
// that is empty without a reason, nothing wider than the window, equal values in all files.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { tabs } from '../src/features/results/view'
import { restored, root, type Station } from './harness'

const kinds = join(root, 'e2e/kinds')
const plans = readdirSync(join(kinds, 'plans')).map((f) => f.replace(/\.yaml$/, ''))
const widths = [390, 768, 1366]
/** What no page and no file says of a value. */
const noValue = /\b(NaN|undefined|null|Infinity)\b|\[object/

interface Attempt {
  verdict?: string
  reason?: string
  mark?: object
}
interface Trial {
  trial?: number
  treatment: string
  attempts?: Attempt[]
}
interface Run {
  id: string
  state: string
}
interface Campaign {
  id: string
  plan: string
  runs: (Run & { trials: Trial[] })[]
}

let s: Station
let page: Page
let campaigns: Campaign[]
/** What went wrong on the page that is open, and on the ones before it. */
const troubles: string[] = []
let place = ''
const trouble = (what: string) => troubles.push(`${place}: ${what}`)
/** Requests without an answer yet, but those whose answer has no end. */
const pending = new Set<unknown>()

async function call<T>(method: string, body: object): Promise<T> {
  const r = await fetch(`${s.url}/linktrial.v1.${method}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  if (!r.ok) throw new Error(`${method}: ${r.status} ${await r.text()}`)
  return (await r.json()) as T
}

beforeAll(async () => {
  s = await restored('kinds', join(kinds, 'store.tar.gz'), join(kinds, 'trusted-keys'))
  const listed = await call<{ campaigns: { id: string; plan: string }[] }>('ResultService/ListCampaigns', {})
  campaigns = await Promise.all(
    listed.campaigns.map(async (c) => {
      const { runs } = await call<{ runs: Run[] }>('OperatorService/ListRuns', { campaignId: c.id })
      const whole = runs.map(async (r) => ({
        ...r,
        trials: (await call<{ trials?: Trial[] }>('OperatorService/GetRun', { runId: r.id })).trials ?? [],
      }))
      return {
        ...c,
        runs: (await Promise.all(whole)).sort((a, b) => a.id.localeCompare(b.id, 'en', { numeric: true })),
      }
    }),
  )
  for (const name of plans) {
    const text = readFileSync(join(kinds, 'plans', `${name}.yaml`)).toString('base64')
    await call('LibraryService/SavePlan', { name, text })
  }
  page = await s.open('/')
  page.on('pageerror', (e) => trouble(`error: ${e.message}`))
  page.on('console', (m) => m.type() === 'error' && trouble(`console: ${m.text()}`))
  page.on('response', (r) => r.status() >= 400 && trouble(`${r.status()} ${r.url()}`))
  page.on('request', (r) => !/Service\/Watch/.test(r.url()) && pending.add(r))
  page.on('requestfinished', (r) => pending.delete(r))
  page.on('requestfailed', (r) => {
    pending.delete(r)
    // A page that is left ends what it has asked for.
    if (r.failure()?.errorText !== 'net::ERR_ABORTED') trouble(`${r.failure()?.errorText} ${r.url()}`)
  })
}, 300_000)
afterAll(() => s?.stop())

/** How the page is: what it is busy with, and how much it has. */
const shape = () =>
  page.evaluate(() => {
    const main = document.querySelector('main')
    const busy = document.querySelector('main [aria-busy="true"]')
    const undrawn = [...document.querySelectorAll<HTMLElement>('main section.panel [role="img"]')].filter(
      // What is near the window is drawn at once, and all else when there is time.
      (e) => !e.dataset.drawn && e.getBoundingClientRect().top < window.innerHeight + 100,
    )
    return !main || busy || undrawn.length ? '' : `${location.href} ${main.innerHTML.length}`
  })
async function settled() {
  let last = ''
  const end = Date.now() + 60_000
  for (;;) {
    const now = pending.size ? '' : await shape()
    if (now && now === last) return
    last = now
    if (Date.now() > end) return trouble(`is not complete within a minute; it waits for ${pending.size} answers`)
    await new Promise((done) => setTimeout(done, 30))
  }
}

/** What reaches beyond the right edge of the window. */
const beyond = () =>
  page.evaluate(async () => {
    await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))
    const wide = document.documentElement.scrollWidth - window.innerWidth
    if (wide <= 0) return ''
    const who = [...document.querySelectorAll('body *')]
      .filter((e) => e.getBoundingClientRect().right > window.innerWidth + 1)
      .slice(0, 3)
      .map((e) => `${e.tagName}.${e.className} ${e.textContent?.trim().slice(0, 30)}`)
    return `${wide} px wider than the window: ${who.join(', ')}`
  })

/** Words, for the eye or a screen reader, but those that people wrote themselves. */
const words = () =>
  page.evaluate(() => {
    const out = [document.title]
    const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
    const own = '.cm-editor, pre, script, style, textarea'
    for (let n = walk.nextNode(); n; n = walk.nextNode()) if (!n.parentElement!.closest(own)) out.push(n.textContent!)
    for (const e of document.querySelectorAll('main [aria-label], main [title], main [alt]'))
      for (const a of ['aria-label', 'title', 'alt']) out.push(e.getAttribute(a) ?? '')
    return out.filter((t) => t.trim())
  })

/** Panels without a point that do not say why, and sections with a heading alone. */
const empty = () =>
  page.evaluate(() => {
    const panels = [...document.querySelectorAll<HTMLElement>('main section.panel')].filter(
      (p) => p.querySelector<HTMLElement>('[data-drawn="0"]') && !p.querySelector('.note'),
    )
    const sections = [...document.querySelectorAll<HTMLElement>('main section')].filter((e) => {
      const heading = e.querySelector<HTMLElement>('h1, h2, h3')?.innerText ?? ''
      const drawn = e.querySelector('canvas, svg, [role="img"]:not([data-drawn])') // or will be
      return e.offsetHeight > 8 && !drawn && e.innerText.replace(heading, '').trim().length < 4
    })
    const main = document.querySelector<HTMLElement>('main')!
    const bare = main.innerText.trim().length < 20 ? ['the page'] : []
    return [...bare, ...[...panels, ...sections].map((e) => e.getAttribute('aria-label') || e.innerText.slice(0, 60))]
  })

async function look(path: string, fits = widths) {
  place = path
  await page.evaluate((to) => {
    type App = { config: { globalProperties: { $router: { push(to: string): Promise<unknown> } } } }
    const app = (document.querySelector('#app') as unknown as { __vue_app__: App }).__vue_app__
    return app.config.globalProperties.$router.push(to).then(() => undefined)
  }, path)
  await settled()
  for (const t of await words()) if (noValue.test(t)) trouble(`says ${JSON.stringify(t.trim().slice(0, 200))}`)
  for (const e of await empty()) trouble(`is empty without a reason: ${e}`)
  for (const width of fits) {
    await page.setViewportSize({ width, height: 768 })
    let wide = await beyond()
    for (const end = Date.now() + 1000; wide && Date.now() < end;) wide = await beyond() // figures follow
    if (wide) trouble(`at ${width}: ${wide}`)
  }
}

/** The trials of a campaign that differ in their pages: of its first treatments, and of each outcome. */
function attemptsOf(c: Campaign) {
  const seen = new Set<string>()
  const first = [...new Set(c.runs.flatMap((r) => r.trials.map((t) => t.treatment)))].slice(0, 5)
  return c.runs.flatMap((r) =>
    r.trials.flatMap((t) =>
      // One without an attempt has a page, too.
      (t.attempts?.length ? t.attempts : [{ reason: 'never run' } as Attempt]).flatMap((a, i) => {
        const treatment = first.includes(t.treatment) ? t.treatment : ''
        const kind = [treatment, a.verdict, a.reason, !!a.mark, (t.attempts?.length ?? 0) > 1].join(' ')
        if (seen.has(kind)) return []
        seen.add(kind)
        return [`/results/attempt/${r.id}/${t.trial ?? 0}${t.attempts?.length ? `?attempt=${i + 1}` : ''}`]
      }),
    ),
  )
}

/** Faults of a drawing: not XML, or headings of panels that are alike. */
const drawing = (svg: string) =>
  page.evaluate((text) => {
    const doc = new DOMParser().parseFromString(text, 'image/svg+xml')
    const error = doc.querySelector('parsererror')
    if (error) return [error.textContent!.slice(0, 200)]
    // A heading is the larger text, with the lines right below it that begin at the same place.
    const headings: string[] = []
    let last: { x: string | null; y: number } | undefined
    for (const t of doc.querySelectorAll('text[text-anchor="start"]')) {
      const [x, y, size] = [t.getAttribute('x'), Number(t.getAttribute('y')), t.getAttribute('font-size')]
      const below = last && last.x === x && y > last.y && y - last.y < 22
      if (below) headings[headings.length - 1] += ` · ${t.textContent}`
      else if (size === '13') headings.push(t.textContent!)
      last = below || size === '13' ? { x, y } : undefined
    }
    return headings.filter((h, i) => headings.indexOf(h) !== i).map((h) => `two panels are headed ${h}`)
  }, svg)

/** Holds the drawing that the page saves, where it has one. */
async function save() {
  const button = page.locator('main .saves').getByRole('button', { name: /^SVG/ })
  if (!(await button.count())) return
  const [file] = await Promise.all([page.waitForEvent('download'), button.click()])
  const text = readFileSync(await file.path(), 'utf8')
  for (const fault of await drawing(text)) trouble(`as SVG: ${fault}`)
  if (noValue.test(text.replace(/<[^>]*>/g, ' '))) trouble('as SVG: has a value that is none')
  if (/="[^"]*(NaN|undefined|Infinity)/.test(text)) trouble('as SVG: draws at a place that is none')
}

test('the store has a campaign of every plan, and every outcome', () => {
  expect(campaigns.map((c) => c.plan).sort()).toEqual([...plans].sort())
  const runs = campaigns.flatMap((c) => c.runs)
  const trials = runs.flatMap((r) => r.trials)
  const attempts = trials.flatMap((t) => t.attempts ?? [])
  const has: Record<string, boolean> = {
    'not one valid trial': !campaigns
      .find((c) => c.plan === 'none')!
      .runs.some((r) => r.trials.some((t) => t.attempts?.some((a) => a.verdict === 'succeeded'))),
    'one iteration': campaigns.find((c) => c.plan === 'published-groups')!.runs.every((r) => r.trials.length === 2),
    'a repeated success': trials.some((t) => t.attempts?.filter((a) => a.verdict === 'succeeded').length === 2),
    'a trial that is skipped': trials.some((t) => !t.attempts?.length),
    'a marked attempt': attempts.some((a) => a.mark && a.reason?.includes('a truck')),
    'an attempt that breaks a rule': attempts.some((a) => a.reason?.startsWith('marked: rule')),
    'an attempt that timed out': attempts.some((a) => a.verdict === 'timed-out'),
    'an attempt that its trial’s skip ended': attempts.some((a) => a.verdict === 'aborted' && a.reason === 'skipped'),
    'an attempt that its run’s end aborted': attempts.some((a) => a.verdict === 'aborted' && a.reason === 'aborted'),
    'a stopped run': runs.some((r) => r.state === 'RUN_STATE_STOPPED'),
    'an aborted run': runs.some((r) => r.state === 'RUN_STATE_ABORTED'),
    'a run that is under way': runs.some((r) => r.state === 'RUN_STATE_RUNNING'),
    'a run that waits for another': runs.some((r) => r.state === 'RUN_STATE_QUEUED'),
  }
  expect(Object.entries(has).flatMap(([what, there]) => (there ? [] : [what]))).toEqual([])
})

test('every page without a campaign of its own', async () => {
  const routes = readFileSync(join(root, 'web/src/router.ts'), 'utf8')
  const paths = [...routes.matchAll(/\bpath: '([^']+)'/g)].map((m) => m[1]!.replaceAll('\\\\', '\\'))
  const shown = ['/runs/:campaign', '/plans/:name', '/results/attempt/:run/:trial(\\d+)', '/:rest(.*)*']
  expect(paths.filter((p) => p.includes(':') && !shown.includes(p))).toEqual([])
  for (const p of paths.filter((p) => !p.includes(':'))) await look(p)
  for (const name of plans) for (const query of ['', '?show=order']) await look(`/plans/${name}${query}`)
  expect(troubles.splice(0).join('\n')).toBe('')
})

test.each(plans)('every page and tab of %s', async (plan) => {
  const c = campaigns.find((x) => x.plan === plan)!
  await look(`/runs/${c.id}?run=${c.runs[0]!.id}&trial=0`)
  if (c.runs.length > 1) await look(`/runs/${c.id}?run=${c.runs.at(-1)!.id}`)
  for (const t of tabs) {
    await look(`/results?ids=${c.id}&tab=${t.name}`)
    await save()
  }
  const first = c.runs[0]!.trials[0]!.treatment
  const all = [...new Set(c.runs.flatMap((r) => r.trials.map((t) => t.treatment)))].map((t) => `hide=${t}`)
  for (const tab of ['figure', 'cdf', 'delivery', 'iterations', 'sweep'])
    for (const hide of [`hide=${first}`, all.join('&')]) {
      await look(`/results?ids=${c.id}&tab=${tab}&${hide}&lock=1&ideal=1&coded=1&by=topology`)
      await save()
    }
  for (const metric of ['normalised', 'share-of-ideal', 'share-of-coded-bound', 'gain', 'timeouts'])
    await look(`/results?ids=${c.id}&tab=sweep&metric=${metric}`, [])
  for (const path of attemptsOf(c)) await look(path)
  expect(troubles.splice(0).join('\n')).toBe('')
})

test('every tab of several campaigns at once', async () => {
  const ids = campaigns.filter((c) => /^(published|flows|probes|none)/.test(c.plan)).map((c) => `ids=${c.id}`)
  for (const t of tabs) {
    await look(`/results?${ids.join('&')}&tab=${t.name}`)
    await save()
  }
  expect(troubles.splice(0).join('\n')).toBe('')
})

/** Formats that not every campaign has: of sweeps, of published values, of samples, of probes, of two campaigns. */
const notAlways = /^(sweep|against|sequence|delays|differences)/

/** The rows of a CSV file (RFC 4180). */
function rowsOf(csv: string): string[][] {
  const out: string[][] = []
  let row: string[] = []
  for (const [, quoted, plain, end] of csv.matchAll(/(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r\n|$)/g)) {
    row.push(quoted?.replaceAll('""', '"') ?? plain!)
    if (end === ',') continue
    out.push(row)
    row = []
    if (!end) break
  }
  return out.filter((r) => r.length > 1 || r[0])
}

interface Table {
  run: string
  rows: { treatment: string; valid: number; average_kb_per_s: number | null }[]
  probes?: { probe: string }[]
}

async function filesOf(ids: string[]): Promise<Map<string, string>> {
  const query = ids.map((id) => `id=${id}`).join('&')
  const get = (format: string) => fetch(`${s.url}/download?format=${format}&${query}`)
  const known = /there are (.*)/
    .exec(await (await get('there-is-no-such-format')).text())![1]!
    .trim()
    .split(', ')
  expect(known.length).toBeGreaterThan(20)
  const files = new Map<string, string>()
  for (const format of known) {
    for (let part = 1; ; part++) {
      place = `${ids.join(' ')} as ${format}:${part}`
      const r = await get(part > 1 ? `${format}:${part}` : format)
      const text = await r.text()
      if (r.ok) files.set(part > 1 ? `${format}:${part}` : format, text)
      else if (part === 1 && !(notAlways.test(format) && text.length > 20)) trouble(`${r.status} ${text}`)
      if (!r.ok || !format.endsWith('svg') || part > 20) break
    }
  }
  return files
}

async function read(ids: string[], files: Map<string, string>) {
  for (const [format, text] of files) {
    place = `${ids.join(' ')} as ${format}`
    const json = format.endsWith('json')
    for (const line of text.split('\n'))
      if (noValue.test(json ? line.replace(/: null\b/, '') : line)) trouble(`says ${line.slice(0, 200)}`)
    if (json)
      JSON.parse(text, (k, v) =>
        v === null && /^(rows|probes|runs|trials|attempts)$/.test(k) ? trouble(`${k} is null`) : v,
      )
    if (/svg/.test(format)) for (const fault of await drawing(text)) trouble(fault)
    if (!format.endsWith('csv')) continue
    const rows = rowsOf(text)
    if (!text.endsWith('\r\n') || /[^\r]\n/.test(text.replace(/"(?:[^"]|"")*"/g, '""')))
      trouble('has lines that do not end with CRLF')
    if (!rows.every((r) => r.length === rows[0]!.length)) trouble('has rows of other lengths than its head')
  }
}

/** The averages of every treatment, of every run: the same in all files and in the page's table. */
async function equal(id: string, files: Map<string, string>) {
  place = `values of ${id}`
  const { tables } = JSON.parse(files.get('json')!) as { tables: Table[] }
  const told = tables.flatMap((t) => t.rows.map((r) => ({ run: t.run, ...r })))
  const csv = rowsOf(files.get('csv')!)
  const [run, treatment, valid, average] = ['run', 'treatment', 'valid', 'average_kb_per_s'].map((k) =>
    csv[0]!.indexOf(k),
  ) as [number, number, number, number]
  const key = (r: { run: string; treatment: string; valid: number; average_kb_per_s: number | null }) =>
    `${r.run} ${r.treatment} ${r.valid} ${r.average_kb_per_s ?? ''}`
  expect(
    csv
      .slice(1)
      .map((r) => [r[run], r[treatment], r[valid] || 0, r[average] ? Number(r[average]) : ''].join(' '))
      .sort(),
    `csv of ${id}`,
  ).toEqual(told.map(key).sort())
  // Attempts that count give the same averages.
  const trials = rowsOf(files.get('trials-csv')!)
  if (trials.length > 1)
    expect(new Set(trials.slice(1).map((r) => r[trials[0]!.indexOf('run')])).size).toBeLessThanOrEqual(tables.length)
  const words = (x: number) => (x >= 1 ? x.toFixed(2) : x.toPrecision(3))
  const averages = told.flatMap((r) => (r.average_kb_per_s === null ? [] : [words(r.average_kb_per_s)]))
  for (const format of ['markdown', 'table', 'latex']) {
    const text = files.get(format)!
    for (const a of averages) if (!text.includes(a)) trouble(`${format} has no average of ${a} KB/s`)
  }
  await look(`/results?ids=${id}&tab=table`)
  const shown = await page.locator('main td .strong').allTextContents()
  expect(shown.filter((x) => x !== '–').sort(), `table of ${id}`).toEqual(averages.sort())
}

test.each(plans)('every file of %s', async (plan) => {
  const { id } = campaigns.find((c) => c.plan === plan)!
  const files = await filesOf([id])
  await read([id], files)
  await equal(id, files)
  expect(troubles.splice(0).join('\n')).toBe('')
})

test('every file of several campaigns', async () => {
  const ids = campaigns.filter((c) => /^(published|flows|probes|none)/.test(c.plan)).map((c) => c.id)
  const files = await filesOf(ids)
  expect([...files.keys()].some((f) => f.startsWith('differences'))).toBe(true)
  await read(ids, files)
  expect(troubles.splice(0).join('\n')).toBe('')
})
