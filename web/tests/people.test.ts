// How people prove who they are: a second factor, and a login at an OpenID Connect provider.
import { createHmac } from 'node:crypto'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { clean, shotNarrow, type Station, station, troubles } from './harness'
import { type Provider, startProvider } from './provider'

let s: Station
let provider: Provider
let folder: string
let anna: Page
let otto: Page
let recovery: string[]
const password = 'correct horse battery'
beforeAll(async () => {
  provider = await startProvider()
  folder = mkdtempSync(join(tmpdir(), 'linktrial-people-'))
  chmodSync(folder, 0o755)
  writeFileSync(join(folder, 'secret'), 'of the client\n')
  s = await station(
    'people',
    '--login',
    ...['--oidc-issuer', provider.url, '--oidc-client-id', 'linktrial', '--oidc-name', 'Lab login'],
    ...['--oidc-client-secret-file', join(folder, 'secret'), '--oidc-role', 'director=field'],
  )
  s.linktrialWith(`${password}\n`, 'user', 'add', 'anna', '--role', 'admin', '--password-stdin')
  s.linktrialWith(`${password}\n`, 'login', 'anna', '--password-stdin')
  s.linktrialWith(`${password}\n`, 'user', 'add', 'otto', '--role', 'admin', '--password-stdin')
})
afterAll(async () => {
  await s?.stop()
  await provider?.stop()
  if (folder) rmSync(folder, { recursive: true, force: true })
})

/** What an authenticator app shows for a secret, some steps of 30 s from now (RFC 6238). */
function code(secret: string, later = 0): string {
  const bits = [...secret]
    .map((c) => 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'.indexOf(c).toString(2).padStart(5, '0'))
    .join('')
  const key = Buffer.from(bits.match(/.{8}/g)!.map((b) => parseInt(b, 2)))
  const step = Buffer.alloc(8)
  step.writeBigUInt64BE(BigInt(Math.floor(Date.now() / 30_000) + later))
  const hash = createHmac('sha1', key).update(step).digest()
  const at = hash[19]! & 15
  return String((hash.readUInt32BE(at) & 0x7fffffff) % 1_000_000).padStart(6, '0')
}
async function fill(page: Page, user: string) {
  await page.getByLabel('Name', { exact: true }).fill(user)
  await page.getByLabel('Password', { exact: true }).fill(password)
  await page.getByRole('button', { name: 'Log in' }).click()
}
async function login(user: string, path = '/'): Promise<Page> {
  const page = await s.open(path)
  await fill(page, user)
  await page.getByRole('link', { name: `Account of ${user}` }).waitFor()
  return page
}

test('an account gets a second factor', async () => {
  anna = await login('anna', '/account')
  await anna.getByText('A login takes your password alone.').waitFor()
  await clean(anna)
  await shotNarrow(anna, 'account-factor-none')
  await anna.getByRole('button', { name: 'Set up …' }).click()
  await anna.getByLabel('Your password').fill('not this one')
  await anna.getByRole('button', { name: 'Continue' }).click()
  await anna.getByText('the password is wrong').waitFor()
  await anna.getByLabel('Your password').fill(password)
  await anna.getByRole('button', { name: 'Continue' }).click()
  const secret = await anna.getByLabel('The secret').inputValue()
  expect(secret).toMatch(/^[A-Z2-7]{32}$/)
  const drawn = await anna.getByAltText('QR code of the secret').evaluate((i: HTMLImageElement) => i.naturalWidth)
  expect(drawn).toBeGreaterThan(100)
  await clean(anna)
  await shotNarrow(anna, 'factor-scan')
  await anna.getByLabel('Code that the app shows').fill(code(secret, 40))
  await anna.getByRole('button', { name: 'Set up', exact: true }).click()
  await anna.getByText('the code is wrong').waitFor()
  await anna.getByLabel('Code that the app shows').fill(code(secret))
  await anna.getByRole('button', { name: 'Set up', exact: true }).click()
  const codes = anna.getByRole('list', { name: 'Recovery codes' }).getByRole('listitem')
  await codes.first().waitFor()
  recovery = await codes.allTextContents()
  expect(recovery).toHaveLength(10)
  await clean(anna)
  await shotNarrow(anna, 'factor-recovery')
  await anna.getByRole('button', { name: 'I have kept them' }).click()
  await anna.getByText('10 recovery codes are left.').waitFor()
  expect(await anna.content()).not.toContain(recovery[0])

  // The command line was logged in without it; it asks for a code, too.
  expect(() => s.linktrial('user', 'list')).toThrow(/was revoked/)
  await anna.getByRole('button', { name: 'Log out' }).first().click()
  await fill(anna, 'anna')
  await anna.getByText('The password of anna is right.').waitFor()
  await clean(anna)
  await shotNarrow(anna, 'login-code')
  await anna.getByLabel('Code', { exact: true }).fill('000 000')
  await anna.getByRole('button', { name: 'Log in' }).click()
  await anna.getByText('The code is wrong').waitFor()
  const used = code(secret, 1)
  await anna.getByLabel('Code', { exact: true }).fill(used)
  await anna.getByRole('button', { name: 'Log in' }).click()
  await anna.getByRole('link', { name: 'Account of anna' }).waitFor()
  expect(() => s.linktrialWith(`${password}\n`, 'login', 'anna', '--password-stdin')).toThrow(
    /code of the second factor/,
  )
  expect(() => s.linktrialWith(`${password}\n${used}\n`, 'login', 'anna', '--password-stdin')).toThrow(
    /used already|code is wrong/,
  )
  expect(s.linktrialWith(`${password}\n${recovery[0]}\n`, 'login', 'anna', '--password-stdin')).toContain('as anna')
  await anna.goto(`${s.url}/account`)
  await anna.getByText('9 recovery codes are left.').waitFor()
  await shotNarrow(anna, 'account-factor')
})

test('an admin removes a lost second factor', async () => {
  otto = await login('otto', '/users')
  await otto.getByRole('row', { name: /^anna.*set/ }).waitFor()
  await clean(otto)
  await shotNarrow(otto, 'users-factor')
  await otto.getByRole('button', { name: 'Remove second factor of anna' }).click()
  await otto.getByRole('button', { name: 'Remove', exact: true }).click()
  await otto.getByText('anna has no second factor any more.').waitFor()
  expect(() => s.linktrial('user', 'list')).toThrow(/was revoked/)
  s.linktrialWith(`${password}\n`, 'login', 'anna', '--password-stdin')
})

test('people log in at the provider, and locally where it is away', async () => {
  provider.person = { sub: 's-1', preferred_username: 'olga', groups: ['everybody'] }
  const page = await s.open('/plans?find=quick')
  await page.getByRole('link', { name: 'Log in with Lab login' }).waitFor()
  await clean(page)
  await shotNarrow(page, 'login-provider')
  await page.getByRole('link', { name: 'Log in with Lab login' }).click()
  await page.getByRole('link', { name: 'I am Olga' }).click()
  await page.getByText('Lab login knows you, and what it says of you gives no role here').waitFor()
  await clean(page)
  await shotNarrow(page, 'provider-refused')

  provider.person.groups = ['field']
  await page.goto(`${s.url}/plans?find=quick`)
  await page.getByRole('link', { name: 'Log in with Lab login' }).click()
  await page.getByRole('link', { name: 'I am Olga' }).click()
  // Our cookie is strict about the site, and the browser came from another.
  await page.getByRole('link', { name: 'Account of olga, director' }).waitFor()
  expect(page.url()).toBe(`${s.url}/plans?find=quick`)
  await page.goto(`${s.url}/account`)
  await page.getByText('You log in with Lab login, and have no password here.').waitFor()
  await clean(page)
  await shotNarrow(page, 'account-provider')
  await page.getByRole('button', { name: 'Log out' }).first().click()
  await page.getByRole('link', { name: 'Log in with Lab login' }).waitFor()

  await provider.stop()
  await page.getByRole('link', { name: 'Log in with Lab login' }).click()
  await page.getByText('Lab login does not answer').waitFor()
  await page.getByRole('link', { name: 'To the login page' }).click()
  await page.getByText('Lab login does not answer, so nobody can log in there now.').waitFor()
  await clean(page)
  await shotNarrow(page, 'login-provider-away')
  await fill(page, 'otto')
  await page.getByRole('link', { name: 'Account of otto' }).waitFor()

  await otto.goto(`${s.url}/audit?user=olga`)
  await otto
    .getByRole('row', { name: /olga.*Provider login.*done/ })
    .first()
    .waitFor()
  await clean(otto)
  // On a phone the header is one row, with the user and the bell in it.
  await otto.setViewportSize({ width: 390, height: 844 })
  await otto
    .getByRole('banner')
    .getByRole('link', { name: /^Notifications/ })
    .waitFor()
  await expect.poll(async () => (await otto.getByRole('banner').boundingBox())!.height).toBeLessThan(64)
  expect(troubles).toEqual([])
})
