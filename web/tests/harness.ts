// What the real-browser tests share: an orchestrator of their own on a free
// port, an emulated lab with agents, and Chromium, all ended with the test file.
import { execFileSync, spawn, type ChildProcess } from 'node:child_process'
import {
  chownSync,
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { request } from 'node:https'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { chromium, type Browser, type BrowserContext, type Locator, type Page } from 'playwright-core'
import { expect } from 'vitest'

export const root = resolve(import.meta.dirname, '../..')
export const bin = process.env.LINKTRIAL_BIN ?? join(root, 'bin')
/** The folder for screenshots; undefined: none are taken. */
export const shots = process.env.LINKTRIAL_SHOTS

/** Laptop and tablet, as in the field; a phone only looks on. */
export const sizes = { laptop: { width: 1366, height: 768 }, tablet: { width: 1024, height: 768 } } as const
const phone = { width: 390, height: 844 }

export interface Station {
  url: string
  /** The orchestrator's data folder. */
  data: string
  browser: Browser
  /** Runs a subcommand against this orchestrator and returns what it printed. */
  linktrial(...args: string[]): string
  /** The same, with what it reads from standard input. */
  linktrialWith(input: string, ...args: string[]): string
  /** Runs a section of tools/bench on the data folder. */
  bench(...args: string[]): void
  /** Starts a subcommand and leaves it running until stop. */
  start(...args: string[]): ChildProcess
  labUp(...args: string[]): Promise<void>
  labDown(): void
  /** The process of the orchestrator, of its database with all its children, or of a lab's agent. */
  pids(of: 'serve' | 'database' | { agent: string }): number[]
  /** Kills the orchestrator as a crash would; serve starts it again on its port. */
  killServe(): Promise<void>
  serve(): Promise<void>
  /** A page of a browser of its own, or with in of one that is there, with its session. */
  open(path: string, options?: { size?: keyof typeof sizes; theme?: string; locale?: string; in?: Page }): Promise<Page>
  stop(): Promise<void>
}

/**
 * Has a page navigate again where the browser gave that up because an address of this machine
 * changed: other tests bring up labs and set up radios meanwhile.
 */
function keepGoing(page: Page): void {
  for (const name of ['goto', 'reload'] as const) {
    const go = page[name].bind(page) as (...args: unknown[]) => Promise<unknown>
    const again = async (...args: unknown[]): Promise<unknown> => {
      for (let n = 1; ; n++) {
        try {
          return await go(...args)
        } catch (e) {
          if (n === 5 || !String(e).includes('ERR_NETWORK_CHANGED')) throw e
        }
      }
    }
    Object.assign(page, { [name]: again })
  }
}

async function freePort(): Promise<number> {
  return new Promise((done, fail) => {
    const s = createServer()
    s.once('error', fail)
    s.listen(0, '127.0.0.1', () => {
      const a = s.address()
      s.close(() => (a && typeof a === 'object' ? done(a.port) : fail(new Error('no port'))))
    })
  })
}

export async function until<T>(
  what: string,
  probe: () => Promise<T | undefined | false> | T | undefined | false,
  seconds = 120,
): Promise<T> {
  const end = Date.now() + seconds * 1000
  let last: unknown
  for (;;) {
    try {
      const v = await probe()
      if (v) return v
    } catch (e) {
      last = e
    }
    if (Date.now() > end) throw new Error(`not within ${seconds} s: ${what}${last ? `: ${String(last)}` : ''}`)
    await new Promise((r) => setTimeout(r, 100))
  }
}

/** Over TLS too, by whatever authority: it is made with the orchestrator. */
function healthy(url: string): Promise<boolean> {
  if (url.startsWith('http:')) return fetch(`${url}/healthz`).then((r) => r.ok)
  return new Promise((done, fail) => {
    request(`${url}/healthz`, { rejectUnauthorized: false }, (r) => {
      r.resume()
      done(r.statusCode === 200)
    })
      .once('error', fail)
      .end()
  })
}

/**
 * Chromium without its own windows: with them each page's window has pages of the browser itself
 * beside it, which take more of a processor than ours.
 */
export const launch = (...more: string[]): Promise<Browser> =>
  chromium.launch({
    executablePath: '/usr/bin/chromium-headless-shell',
    args: ['--no-sandbox', '--disable-gpu', '--disable-background-networking', '--disable-dev-shm-usage', ...more],
  })

/** Starts everything but the lab, serve with these flags besides. Chromium and the lab need root. */
export const station = (name: string, ...flags: string[]): Promise<Station> => begin(name, flags)

/** The same with the store of a backup, whose keys are in the file beside it. */
export const restored = (name: string, backup: string, keys: string): Promise<Station> =>
  begin(name, [], ['backup', 'restore', backup, '--trusted-keys', keys])

/**
 * An orchestrator without a lab, whose store has the results of these plans, in their order.
 * A lab ran them when the store was made (web/tests/stored/README.md), and does so again where
 * LINKTRIAL_MAKE_STORES is set.
 */
export async function stored(name: string, lab: string[], plans: string[]): Promise<Station> {
  const [backup, keys, ran] = ['tar.gz', 'keys', 'plans'].map((e) =>
    join(import.meta.dirname, 'stored', `${name}.${e}`),
  ) as [string, string, string]
  const texts = plans.join('---\n')
  if (process.env.LINKTRIAL_MAKE_STORES) {
    const s = await station(name)
    try {
      await s.labUp(...lab)
      for (const text of plans) {
        const file = join(s.data, `${/^name: (.*)$/m.exec(text)![1]}.yaml`)
        writeFileSync(file, text)
        s.linktrial('run', file)
      }
      rmSync(backup, { force: true })
      s.linktrial('backup', 'create', '--out', backup)
      chmodSync(backup, 0o644)
      writeFileSync(keys, s.linktrial('signing', 'keys'))
      writeFileSync(ran, texts)
    } finally {
      await s.stop()
    }
  }
  if (readFileSync(ran, 'utf8') !== texts)
    throw new Error(`the plans are not those of ${backup}: make it again (web/tests/stored/README.md)`)
  return restored(name, backup, keys)
}

async function begin(name: string, flags: string[], before?: string[]): Promise<Station> {
  if (process.getuid?.() !== 0) throw new Error('the browser tests make network namespaces, which needs root')
  if (!existsSync(join(bin, 'linktrial'))) throw new Error(`no ${join(bin, 'linktrial')}: run make build first`)
  // The database's own user must reach its folder, unlike one below the caller's home.
  const data = mkdtempSync(join('/var/tmp', `linktrial-web-${name}-`))
  chmodSync(data, 0o755)
  chownSync(data, 0, 0)
  const port = await freePort()
  const tls = flags.includes('--tls')
  const url = `${tls ? 'https' : 'http'}://127.0.0.1:${port}`
  const lab = `web${name}`
  const env = {
    ...process.env,
    LINKTRIAL_DATA: data,
    LINKTRIAL_ORCHESTRATOR: url,
    XDG_CONFIG_HOME: join(data, 'config'),
  }
  const children: ChildProcess[] = []
  const contexts: BrowserContext[] = []
  let server: ChildProcess | undefined
  let log = ''
  let labStands = false

  const start = (...args: string[]): ChildProcess => {
    const c = spawn(join(bin, 'linktrial'), args, { env, cwd: tmpdir(), stdio: ['ignore', 'pipe', 'pipe'] })
    const keep = (b: Buffer) => (log = (log + b.toString()).slice(-200_000))
    c.stdout!.on('data', keep)
    c.stderr!.on('data', keep)
    children.push(c)
    return c
  }
  const pids: Station['pids'] = (of) => {
    if (of === 'serve') return [server!.pid!]
    const all = readdirSync('/proc')
      .filter((d) => /^\d+$/.test(d))
      .flatMap((d) => {
        try {
          const args = readFileSync(`/proc/${d}/cmdline`, 'utf8').split('\0')
          const parent = Number(
            readFileSync(`/proc/${d}/stat`, 'utf8')
              .replace(/^.*\) /s, '')
              .split(' ')[1],
          )
          return [{ pid: Number(d), parent, args }]
        } catch {
          return [] // it has ended
        }
      })
    const mine = all.filter((p) => p.args.some((a) => a.startsWith(data)))
    if (of !== 'database') return mine.filter((p) => p.args[1] === 'agent' && p.args[3] === of.agent).map((p) => p.pid)
    const main = mine.filter((p) => p.args[0]!.endsWith('postgres')).map((p) => p.pid)
    return [...main, ...all.filter((p) => main.includes(p.parent)).map((p) => p.pid)]
  }
  const gone = (c: ChildProcess) =>
    new Promise<void>((done) => (c.exitCode !== null || c.signalCode !== null ? done() : c.once('exit', () => done())))
  const linktrialWith = (input: string, ...args: string[]): string =>
    execFileSync(join(bin, 'linktrial'), args, {
      env,
      cwd: tmpdir(),
      encoding: 'utf8',
      input,
      stdio: ['pipe', 'pipe', 'pipe'],
    })
  const linktrial = (...args: string[]): string => linktrialWith('', ...args)
  const bench = (...args: string[]): void => {
    execFileSync('go', ['run', './tools/bench', ...args], {
      env: { ...env, LINKTRIAL_BIN: bin },
      cwd: root,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
    })
  }

  const serve = async () => {
    server = start('serve', '--listen', `127.0.0.1:${port}`, ...flags)
    await until('the orchestrator answers', async () => {
      if (server!.exitCode !== null) throw new Error(`serve ended with ${server!.exitCode}:\n${log}`)
      return healthy(url)
    })
  }

  const browser = await launch()
  const stop = async () => {
    for (const c of contexts) await c.close().catch(() => {})
    await browser.close()
    if (labStands) {
      try {
        linktrial('lab', 'down', '--name', lab)
      } catch (e) {
        console.error(`lab down: ${String(e)}`)
      }
    }
    for (const c of children.reverse()) {
      if (c.exitCode !== null || c.signalCode !== null) continue
      c.kill('SIGTERM')
      const late = setTimeout(() => c.kill('SIGKILL'), 30_000)
      await gone(c)
      clearTimeout(late)
    }
    rmSync(data, { recursive: true, force: true })
  }
  try {
    if (before) linktrial(...before)
    await serve()
  } catch (e) {
    await stop()
    throw e
  }

  return {
    url,
    data,
    browser,
    linktrial,
    linktrialWith,
    bench,
    start,
    pids,
    serve,
    stop,
    async killServe() {
      server!.kill('SIGKILL')
      await gone(server!)
    },
    async labUp(...args) {
      // One that is up already is another run's, which removes it itself.
      linktrial('lab', 'up', '--name', lab, '--agents', ...args)
      labStands = true
      await until('three agents are connected', () => (linktrial('nodes').match(/connected/g) ?? []).length >= 3)
    },
    labDown() {
      linktrial('lab', 'down', '--name', lab)
      labStands = false
    },
    async open(path, { size = 'laptop', theme, locale = 'en-GB', in: other } = {}) {
      const context =
        other?.context() ??
        (await browser.newContext({
          viewport: sizes[size],
          locale,
          timezoneId: 'Europe/Berlin',
          acceptDownloads: true,
          ignoreHTTPSErrors: tls,
        }))
      // Only to notice what hangs: a busy machine may take its time.
      context.setDefaultTimeout(120_000)
      if (!other) contexts.push(context)
      if (theme) await context.addInitScript((t) => localStorage.setItem('linktrial-theme', t), theme)
      const page = await context.newPage()
      keepGoing(page)
      // A page that throws is broken even where the test looks elsewhere.
      page.on('pageerror', (e) => troubles.push(`${path}: ${e.message}`))
      page.on(
        'console',
        (m) =>
          m.type() === 'error' &&
          !/Failed to load resource|net::ERR/.test(m.text()) &&
          troubles.push(`${path}: ${m.text()}`),
      )
      await page.goto(url + path)
      return page
    },
  }
}

/** What pages have thrown or logged as errors so far; tests expect it to be empty. */
export const troubles: string[] = []

/** Screenshot of a part of the page, for the documents. */
export async function shotOf(part: Locator, name: string): Promise<void> {
  if (!shots) return
  mkdirSync(shots, { recursive: true })
  await part.screenshot({ path: join(shots, `${name}.png`), animations: 'disabled' })
}

/** Screenshot of the whole page, or of what the screen shows of it. */
export async function shot(page: Page, name: string, fullPage = true): Promise<void> {
  if (!shots) return
  mkdirSync(shots, { recursive: true })
  // What stays in view stands at the top of a whole page only where that is not scrolled.
  if (fullPage) await page.evaluate(() => document.querySelector('dialog[open]') || window.scrollTo(0, 0))
  await page.screenshot({ path: join(shots, `${name}.png`), fullPage, animations: 'disabled' })
}

/** The page at both sizes. */
export async function shotBoth(page: Page, name: string): Promise<void> {
  if (!shots) return
  for (const [size, viewport] of Object.entries(sizes)) {
    await page.setViewportSize(viewport)
    await page.waitForTimeout(250) // figures follow the window's size
    await shot(page, `${name}-${size}`)
  }
  await page.setViewportSize(sizes.laptop)
}

/** The page on a laptop and on a phone. */
export async function shotNarrow(page: Page, name: string): Promise<void> {
  if (!shots) return
  await shot(page, `${name}-laptop`)
  await page.setViewportSize(phone)
  await page.waitForTimeout(250)
  await shot(page, `${name}-phone`)
  await page.setViewportSize(sizes.laptop)
}

const axeSource = readFileSync(join(import.meta.dirname, '../node_modules/axe-core/axe.min.js'), 'utf8')

interface Violation {
  id: string
  impact: string
  help: string
  nodes: { html: string; failureSummary: string }[]
}
async function violations(page: Page): Promise<Violation[]> {
  await page.evaluate(axeSource)
  return page.evaluate(async () => {
    const w = window as unknown as { axe: { run(): Promise<{ violations: Violation[] }> } }
    return (await w.axe.run()).violations
  })
}

/** Serious and critical findings of axe-core, one line each. */
export async function axe(page: Page): Promise<string[]> {
  return (await violations(page))
    .filter((v) => v.impact === 'serious' || v.impact === 'critical')
    .flatMap((v) =>
      v.nodes
        .slice(0, 3)
        .map(
          (n) => `${v.id} (${v.impact}): ${v.help}: ${n.html.slice(0, 160)} ${n.failureSummary.split('\n')[1] ?? ''}`,
        ),
    )
}

/** All that axe-core finds, whatever its weight: rule and number of elements. */
export async function axeRules(page: Page): Promise<string[]> {
  return (await violations(page)).map((v) => `${v.id} (${v.impact}) ${v.nodes.length}`)
}

/** The page has no such finding, once messages have faded in or out. */
export async function clean(page: Page): Promise<void> {
  await expect.poll(async () => (await axe(page)).join('\n')).toBe('') // as text, a failure shows it whole
}

/** The bytes of scripts that a page has loaded, compressed as they came over the wire. */
export async function scriptBytes(page: Page): Promise<number> {
  return page.evaluate(() =>
    (performance.getEntriesByType('resource') as PerformanceResourceTiming[])
      .filter((e) => e.name.endsWith('.js'))
      .reduce((n, e) => n + e.encodedBodySize, 0),
  )
}
