// What people are told while they are elsewhere: the page of notifications, the bell, the browser's own notifications,
// and a webhook that a real HTTP receiver gets.
import { createHmac } from 'node:crypto'
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { clean, shot, shotBoth, shotNarrow, station, type Station, troubles } from './harness'

const plan = `name: told
title: Told
radio: prc-117g-anw2c
topology: vip-lot
size: 16 KiB
treatments:
  - {name: tcp-cubic, label: TCP CUBIC, protocol: tcp, options: {congestion: cubic}}
iterations: 1
order: fixed
seed: 7
limits: {connect: 10s, transfer: 60s, attempts: 3}
sample_interval: 100ms
`
const secret = 'signs what the chat receives'

interface Received {
  headers: IncomingHttpHeaders
  text: string
  body: { id: number; kind: string; title: string; run?: string; path: string }
}
let s: Station
let receiver: Server
let hook = ''
/** What the receiver answers, and what it got. */
let status = 204
const received: Received[] = []
/** A page of the browser whose notifications are allowed. */
let first: Page

beforeAll(async () => {
  receiver = createServer((req, res) => {
    let text = ''
    req.on('data', (b: Buffer) => (text += b.toString()))
    req.on('end', () => {
      received.push({ headers: req.headers, text, body: JSON.parse(text) as Received['body'] })
      res.writeHead(status).end()
    })
  })
  await new Promise<void>((done) => receiver.listen(0, '127.0.0.1', done))
  hook = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/hook`
  s = await station('notify')
  await s.labUp('--radio', 'prc-117g-anw2c', '--topology', 'vip-lot')
}, 400_000)
afterAll(async () => {
  await s?.stop()
  receiver?.closeAllConnections()
  receiver?.close()
})

/** A field of the dialog, with its label and what is said of it. */
const fieldOf = (page: Page, label: string) =>
  page
    .getByRole('dialog')
    .locator('div.field')
    .filter({ has: page.getByText(label, { exact: true }) })
/** What is wrong with a field, as a screen reader is told: the text that describes it. */
const problemOf = (page: Page, label: string) =>
  fieldOf(page, label)
    .locator('[aria-invalid="true"]')
    .evaluateAll((all) =>
      all
        .flatMap((f) => (f.getAttribute('aria-describedby') ?? '').split(' '))
        .map((id) => document.getElementById(id))
        .filter((e) => e?.classList.contains('problem'))
        .map((e) => e!.textContent)
        .join(),
    )

test('a webhook is added: what is wrong is said beside its field, and a test arrives, signed', async () => {
  const page = (first = await s.open('/notifications'))
  await page.getByText('No notification yet').waitFor()
  await clean(page)
  await page.getByRole('tab', { name: 'Where it is sent' }).click()
  await page.getByText('No notification channel yet').waitFor()
  await clean(page)
  await page.getByRole('button', { name: 'Add webhook …' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Name', { exact: true }).fill('chat')
  await dialog.getByLabel('URL', { exact: true }).fill(hook.replace('//', '//ada:secret@'))
  await dialog.getByRole('button', { name: 'Add', exact: true }).click()
  await expect.poll(() => problemOf(page, 'URL')).toContain('is refused')
  expect(await page.evaluate(() => document.activeElement?.getAttribute('type'))).toBe('url')
  await clean(page)
  await shotNarrow(page, 'notifications-webhook')
  await dialog.getByLabel('URL', { exact: true }).fill(hook)
  await dialog.getByLabel('Secret', { exact: true }).fill(secret)
  await dialog.getByRole('button', { name: 'Add', exact: true }).click()
  const row = page.getByRole('row', { name: /^chat/ })
  await row.getByText('nothing sent yet').waitFor()
  await row.getByRole('button', { name: 'Test chat' }).click()
  await row.getByText('The test was delivered.').waitFor()
  const got = received.find((r) => r.body.kind === 'test')!
  const signed = createHmac('sha256', secret).update(`${String(got.headers['linktrial-timestamp'])}.${got.text}`)
  expect(got.headers['linktrial-signature']).toBe(`sha256=${signed.digest('hex')}`)
  await clean(page)
  await shotBoth(page, 'notifications-channels')
  await shotNarrow(page, 'notifications-channels')
})

test('a test that fails says why where it was pressed', async () => {
  status = 500
  const row = first.getByRole('row', { name: /^chat/ })
  await row.getByRole('button', { name: 'Test chat' }).click()
  await row.getByText(/The test failed: .*500/).waitFor()
  await clean(first)
  await shotNarrow(first, 'notifications-test-failed')
  status = 204
})

test('what the orchestrator refuses is said beside its field, and a secret is never filled in', async () => {
  const page = first
  await page.getByRole('button', { name: 'Add e-mail …' }).click()
  const dialog = page.getByRole('dialog')
  const save = dialog.getByRole('button', { name: 'Add', exact: true })
  await dialog.getByLabel('Name', { exact: true }).fill('mail')
  await dialog.getByLabel('Mail server', { exact: true }).fill('mail.example')
  await dialog.getByLabel('User', { exact: true }).fill('field')
  await dialog.getByLabel('From', { exact: true }).fill('linktrial@mail.example')
  await dialog.getByLabel('To', { exact: true }).fill('ada@mail.example')
  await save.click()
  await expect.poll(() => problemOf(page, 'Password')).toContain('takes a password')
  await dialog.getByLabel('Password', { exact: true }).fill('correct horse battery')
  // The form does not know this one.
  await dialog.getByLabel('Mail server', { exact: true }).fill('mail.example?x')
  await save.click()
  await expect.poll(() => problemOf(page, 'Mail server')).toContain('expected a name or an address')
  await clean(page)
  await shotNarrow(page, 'notifications-email')
  await dialog.getByLabel('Mail server', { exact: true }).fill('mail.example')
  await dialog.getByLabel('Off: nothing is sent, and the settings are kept').check()
  await save.click()
  const row = page.getByRole('row', { name: /^mail/ })
  await row.getByText('off', { exact: true }).waitFor()
  await row.getByRole('button', { name: /^Change/ }).click()
  expect(await fieldOf(page, 'Password').locator('select').inputValue()).toBe('keep')
  expect(await dialog.locator('input[type="password"]').count()).toBe(0)
  await dialog.getByLabel('Mail server', { exact: true }).fill('other.example')
  await dialog.getByRole('button', { name: 'Save' }).click()
  await expect.poll(() => problemOf(page, 'Password')).toContain('password again')
  await dialog.getByRole('button', { name: 'Cancel' }).click()
})

test('who changed it meanwhile is not overwritten', async () => {
  const page = first
  const change = page.getByRole('row', { name: /^chat/ }).getByRole('button', { name: /^Change/ })
  const dialog = page.getByRole('dialog')
  await change.click()
  const other = await s.open('/notifications?show=sent', { in: page })
  await other
    .getByRole('row', { name: /^chat/ })
    .getByRole('button', { name: /^Change/ })
    .click()
  await other.getByRole('dialog').getByLabel('only these').check()
  await other.getByRole('dialog').getByLabel('A run has ended').check()
  await other.getByRole('dialog').getByRole('button', { name: 'Save' }).click()
  await other.getByText('chat is saved.').waitFor()
  await other.close()
  await dialog.getByRole('button', { name: 'Save' }).click()
  await dialog.getByText('somebody has changed or removed these settings').waitFor()
  await clean(page)
  await shotNarrow(page, 'notifications-conflict')
  await dialog.getByRole('button', { name: 'Load the saved settings' }).click()
  await expect.poll(() => dialog.getByLabel('A run has ended').isChecked()).toBe(true)
  await dialog.getByRole('button', { name: 'Save' }).click()
  await dialog.waitFor({ state: 'hidden' })
})

interface Shown {
  title: string
  tag: string
}
declare global {
  interface Window {
    shown: Shown[]
  }
}
/** What a page has shown with the means of the browser. */
const shownIn = (page: Page) => page.evaluate(() => window.shown)

test('a run that ends is told once: by the webhook, by one tab of the browser, and by the bell', async () => {
  // A browser without a desktop refuses every page's notifications, whatever permissions it is
  // given: the answer is put in its place, and what is made is kept.
  await first.context().addInitScript(() => {
    window.shown = []
    const Real = window.Notification
    let permission: NotificationPermission = (localStorage.getItem('granted') as NotificationPermission) ?? 'default'
    window.Notification = class extends Real {
      static override get permission() {
        return permission
      }
      static override requestPermission() {
        permission = 'granted'
        localStorage.setItem('granted', permission)
        return Promise.resolve(permission)
      }
      constructor(title: string, o?: NotificationOptions) {
        super(title, o)
        window.shown.push({ title, tag: o?.tag ?? '' })
      }
    }
  })
  await first.reload()
  await first.getByRole('button', { name: 'Turn on' }).click()
  await first.getByText('On: this browser shows each notification').waitFor()
  expect((await shownIn(first)).map((n) => n.title)).toEqual(['Linktrial'])
  await clean(first)
  await shotNarrow(first, 'notifications-browser')
  const second = await s.open('/fleet', { in: first })
  const phone = await s.open('/lab', { in: first })
  await phone.setViewportSize({ width: 390, height: 844 })
  const bell = (page: Page) => page.getByRole('banner').getByRole('link', { name: /^Notifications/ })
  expect(await bell(second).getAttribute('aria-label')).toBe('Notifications')
  // The list is where what comes is seen at once.
  await first.goto(`${s.url}/runs`)

  const r = await fetch(`${s.url}/linktrial.v1.OperatorService/StartPlan`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ file: 'told.yaml', text: Buffer.from(plan).toString('base64') }),
  })
  const campaign = ((await r.json()) as { campaignId: string }).campaignId
  await expect.poll(() => received.some((x) => x.body.run?.startsWith(campaign)), { timeout: 240_000 }).toBe(true)
  // The webhook was told to send runs that have ended, not campaigns.
  const told = received.filter((x) => x.body.kind !== 'test')
  expect(told.map((x) => x.body.kind)).toEqual(['run-ended'])
  for (const page of [first, second, phone])
    await expect.poll(() => bell(page).getAttribute('aria-label')).toMatch(/^Notifications, [12] not seen yet$/)
  const id = String(told[0]!.body.id)
  await expect
    .poll(async () => [...(await shownIn(first)), ...(await shownIn(second)), ...(await shownIn(phone))])
    .toContainEqual({ title: told[0]!.body.title, tag: id })
  const all = [...(await shownIn(first)), ...(await shownIn(second)), ...(await shownIn(phone))]
  expect(all.filter((n) => n.tag === id)).toHaveLength(1)
  // On a phone the header is one row, with the bell in it.
  expect((await phone.getByRole('banner').boundingBox())!.height).toBeLessThan(64)
  await shot(phone, 'notifications-bell-phone', false)
  await clean(second)
  await shot(second, 'notifications-bell-laptop', false)
  await phone.close()

  await bell(second).click()
  const entry = second.getByRole('listitem').filter({ hasText: told[0]!.body.title }).first()
  await entry.getByText('new', { exact: true }).waitFor()
  await clean(second)
  await shotBoth(second, 'notifications')
  await shotNarrow(second, 'notifications')
  // Seen in one tab is seen in all.
  for (const page of [first, second])
    await expect.poll(() => bell(page).getAttribute('aria-label')).toBe('Notifications')
  await second.getByRole('combobox', { name: 'Kind' }).selectOption('run-failed')
  await second.getByText('None of this kind').waitFor()
  await second.getByRole('combobox', { name: 'Kind' }).selectOption('run-ended')
  await entry.getByRole('link').click()
  await expect.poll(() => new URL(second.url()).pathname).toBe(`/runs/${campaign}`)
  await second.close()
}, 600_000)

test('deliveries are shown with their last error, and a webhook is removed', async () => {
  const page = first
  await page.goto(`${s.url}/notifications?show=sent`)
  const row = page.getByRole('row', { name: /^chat/ })
  await row.getByText(/last delivered/).waitFor()
  await row.getByRole('button', { name: /^Remove/ }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Remove', exact: true }).click()
  await page.getByText('chat is removed.').waitFor()
  await row.waitFor({ state: 'detached' })
  expect(troubles).toEqual([])
})

test('on a page that came unencrypted from another machine it is said why, and what to do', async () => {
  const page = await s.open('/no/such/page')
  await page.addInitScript(() => Object.defineProperty(window, 'isSecureContext', { get: () => false }))
  await page.goto(`${s.url}/notifications?show=sent`)
  await page.getByText('linktrial serve --tls').waitFor()
  expect(await page.getByRole('button', { name: 'Turn on' }).count()).toBe(0)
  await clean(page)
  await shotNarrow(page, 'notifications-insecure')
})
