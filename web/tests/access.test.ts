// People in a browser: the first admin, logging in and back to where one was,
// what each role may, a session that ends under a plan that is being written.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { clean, shot, shotBoth, type Station, station, troubles, until } from './harness'

let s: Station
let anna: Page
beforeAll(async () => {
  s = await station('access', '--login')
})
afterAll(() => s?.stop())

const secret = 'correct horse battery'

async function fill(page: Page, user: string, password: string) {
  await page.getByLabel('Name', { exact: true }).fill(user)
  await page.getByLabel('Password', { exact: true }).fill(password)
  await page.getByRole('button', { name: 'Log in' }).click()
}
async function login(user: string, path = '/', password = secret): Promise<Page> {
  const page = await s.open(path)
  await page.getByRole('heading', { name: 'Log in' }).waitFor()
  await fill(page, user, password)
  await page.getByRole('link', { name: `Account of ${user}` }).waitFor()
  return page
}
const menu = (page: Page) => page.getByRole('navigation', { name: 'Main' }).getByRole('link').allTextContents()

test('before there is an admin the login page says how to make one', async () => {
  const page = await s.open('/')
  await page.getByText('Nobody can log in yet').waitFor()
  await clean(page)
  await shotBoth(page, 'login-first')
  // The page of the link that 'linktrial start' prints.
  await page.goto(`${s.url}/welcome`)
  await page.getByText('This link is not complete').waitFor()
  await page.goto('about:blank')
  await page.goto(`${s.url}/welcome#${readFileSync(join(s.data, 'setup-token'), 'utf8').trim()}`)
  await page.getByText('Make the first admin, who adds the others').waitFor()
  await clean(page)
  await shotBoth(page, 'welcome')
  const made = page.getByRole('button', { name: 'Make the first admin' })
  await page.getByLabel('Name', { exact: true }).fill('anna')
  await page.getByLabel('Password', { exact: true }).fill(secret)
  await page.getByLabel('Password again').fill('another one')
  await made.click()
  await page.getByText('The two passwords are different.').waitFor()
  await page.getByLabel('Password again').fill(secret)
  await made.click()
  await page.getByRole('link', { name: 'Account of anna' }).waitFor()
  expect(new URL(page.url()).pathname).toBe('/')
  // The link is good once.
  const other = await s.open('/welcome#lts_x')
  await other.getByText('There is an admin already').waitFor()
  await clean(other)
  await other.getByRole('link', { name: 'log in' }).click()
  await other.getByText('Only users of this orchestrator can log in').waitFor()
  await other.close()
  await page.close()
})

test('logging in leads back to where one wanted to be', async () => {
  const page = await s.open('/plans?find=quick')
  await page.getByRole('heading', { name: 'Log in' }).waitFor()
  expect(new URL(page.url()).pathname).toBe('/login')
  expect(await page.getByRole('navigation', { name: 'Main' }).count()).toBe(0)
  await clean(page)
  await shotBoth(page, 'login')
  await fill(page, 'anna', 'wrong password')
  await page.getByText('The name or the password is wrong.').waitFor()
  await clean(page)
  await shot(page, 'login-wrong')
  await fill(page, 'anna', secret)
  await page.getByRole('heading', { name: 'Plans' }).waitFor()
  expect(page.url()).toBe(`${s.url}/plans?find=quick`)
  expect(await menu(page)).toEqual(expect.arrayContaining(['Overview', 'Users', 'Audit log']))
  const cookie = (await page.context().cookies()).find((c) => c.name === 'linktrial')
  expect(cookie).toMatchObject({ httpOnly: true, sameSite: 'Strict', path: '/' })
  // Who is logged in has no use for the login page.
  await page.goto(`${s.url}/login`)
  await page.getByRole('heading', { name: 'Overview' }).waitFor()
  for (const theme of ['dark', 'sun']) {
    const p = await s.open('/login', { theme })
    await p.getByRole('heading', { name: 'Log in' }).waitFor()
    await clean(p)
  }
  anna = page
})

test('an admin keeps users', async () => {
  await anna.goto(`${s.url}/users`)
  for (const [name, role] of [
    ['dirk', 'director'],
    ['vera', 'viewer'],
  ] as const) {
    await anna.getByRole('button', { name: 'Add a user' }).click()
    await anna.getByLabel('Name', { exact: true }).fill(name)
    await anna
      .getByRole('dialog')
      .getByRole('combobox')
      .selectOption({
        label: {
          director: 'director: also plans, starts and controls runs',
          viewer: 'viewer: sees everything but users and the audit log',
        }[role],
      })
    if (name === 'dirk') {
      await anna.getByLabel('First password').fill('short')
      await anna.getByRole('button', { name: 'Add', exact: true }).click()
      await anna.getByText('5 characters, expected at least 10').waitFor()
      await clean(anna)
      await shot(anna, 'users-add', false)
    }
    await anna.getByLabel('First password').fill(secret)
    await anna.getByRole('button', { name: 'Add', exact: true }).click()
    await anna.getByText(`${name} can log in now.`).waitFor()
  }
  // The only admin stays one, and the page shows what is true.
  await anna.getByLabel('Role of anna').selectOption('viewer')
  await anna.getByText('anna is the only admin').waitFor()
  expect(await anna.getByLabel('Role of anna').inputValue()).toBe('3')
  await clean(anna)
  await until('messages have gone', async () => (await anna.locator('.toast').count()) === 0)
  await shotBoth(anna, 'users')
})

test('a viewer sees, and is told what takes another role', async () => {
  const vera = await login('vera', '/plans')
  expect(await menu(vera)).not.toContain('Users')
  const fresh = vera.getByRole('button', { name: /^New plan/ })
  expect(await fresh.isDisabled()).toBe(true)
  expect(await fresh.getAttribute('title')).toBe('vera is a viewer: this takes a director')
  await vera.goto(`${s.url}/plans/quickstart`)
  await vera.getByRole('button', { name: /^Start now/ }).waitFor()
  expect(await vera.getByRole('button', { name: /^Start now/ }).isDisabled()).toBe(true)
  await vera
    .getByText('Nothing is wrong')
    .or(vera.getByText(/problem|runs?,/).first())
    .first()
    .waitFor()
  await clean(vera)
  await shotBoth(vera, 'plan-viewer')
  for (const path of ['/users', '/audit']) {
    await vera.goto(s.url + path)
    await vera.getByText('vera is a viewer: this takes an admin.').waitFor()
    await clean(vera)
  }
  // The orchestrator says the same to who asks it past the page.
  const status = await vera.evaluate(
    async () =>
      (
        await fetch('/linktrial.v1.LabService/LabUp', {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: '{}',
        })
      ).status,
  )
  expect(status).toBe(403)
  // With another role, without logging in again.
  await anna.getByLabel('Role of vera').selectOption('director')
  await anna.getByText('vera is a director now').waitFor()
  await vera.getByRole('link', { name: 'Plans' }).click()
  await until('the button can be pressed', () => fresh.isEnabled())
})

test('an account has a password and tokens', async () => {
  const page = await login('vera', '/account')
  await page.getByRole('heading', { name: 'API tokens' }).waitFor()
  await page.getByRole('button', { name: 'New token' }).click()
  await page.getByLabel('Name', { exact: true }).fill('nightly results')
  await page.getByRole('button', { name: 'Create' }).click()
  const token = await page.getByLabel('The token').inputValue()
  expect(token).toMatch(/^ltp_[\w-]{43}$/)
  await clean(page)
  await shot(page, 'account-token', false)
  await page.getByRole('button', { name: 'Done' }).click()
  expect(await page.content()).not.toContain(token)
  const with_ = (method: string) =>
    fetch(`${s.url}/linktrial.v1.${method}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
      body: '{}',
    })
  expect((await with_('OperatorService/ListRuns')).status).toBe(200)
  expect((await with_('LabService/LabDown')).status).toBe(403) // it is a viewer's

  await page.getByRole('button', { name: 'Revoke nightly results' }).click()
  await page.getByText('nightly results is revoked.').waitFor()
  expect((await with_('OperatorService/ListRuns')).status).toBe(401)

  await page.getByLabel('Current password').fill(secret)
  await page.getByLabel('New password', { exact: true }).fill('another horse here')
  await page.getByLabel('New password again').fill('another horse')
  await page.getByRole('button', { name: 'Change the password' }).click()
  await page.getByText('The two new passwords are different.').waitFor()
  await page.getByLabel('New password again').fill('another horse here')
  await page.getByRole('button', { name: 'Change the password' }).click()
  await page.getByText('The password is changed.').waitFor()
  await clean(page)
  await shotBoth(page, 'account')
})

test('a session that ends under a plan loses nothing of it', async () => {
  const dirk = await login('dirk', '/plans')
  await dirk.getByRole('button', { name: 'New plan' }).click()
  await dirk.getByLabel('Name', { exact: true }).fill('evening')
  await dirk.getByRole('button', { name: 'Create' }).click()
  await dirk.waitForURL('**/plans/evening')
  const title = dirk.getByLabel('Title', { exact: true })
  await title.fill('An evening at the lake')
  await title.press('Enter')
  await dirk.getByText('not saved').waitFor()

  await anna.goto(`${s.url}/users`)
  await anna.getByRole('button', { name: 'New password of dirk' }).click()
  await anna.getByLabel('New password', { exact: true }).fill('quite another horse')
  await anna.getByRole('button', { name: 'Set password' }).click()
  await anna.getByText('dirk has a new password').waitFor()

  // The page may have asked for something before the click, and be covered already:
  // the event reaches the button in either case.
  await dirk.getByRole('button', { name: 'Save', exact: true }).dispatchEvent('click')
  await dirk.getByRole('heading', { name: 'Your session has ended' }).waitFor()
  await clean(dirk)
  await shotBoth(dirk, 'session-over')
  const over = dirk.getByRole('dialog')
  expect(await over.getByLabel('Name').inputValue()).toBe('dirk')
  await dirk.keyboard.press('Escape')
  await over.getByLabel('Password').fill('quite another horse')
  await over.getByRole('button', { name: 'Log in' }).click()
  await over.waitFor({ state: 'detached' })
  expect(await title.inputValue()).toBe('An evening at the lake')
  await dirk.getByRole('button', { name: 'Save', exact: true }).click()
  await dirk.getByText('Saved as revision 2.').waitFor()

  await dirk.getByRole('button', { name: 'Log out' }).click()
  await dirk.getByRole('heading', { name: 'Log in' }).waitFor()
  await dirk.goBack()
  await dirk.getByRole('heading', { name: 'Log in' }).waitFor()
  expect(await dirk.getByText('An evening at the lake').count()).toBe(0)
})

test('the log says who did what', async () => {
  await anna.goto(`${s.url}/audit`)
  await anna.getByText('Save plan').first().waitFor()
  const row = (words: RegExp) => anna.getByRole('row', { name: words })
  await row(/dirk.*Save plan.*done/)
    .first()
    .waitFor()
  await row(/vera.*Lab up.*refused.*vera is a viewer/).waitFor()
  await row(/anna.*Login.*refused.*the name or the password is wrong/).waitFor()
  expect(await anna.content()).not.toContain(secret)
  await anna.getByText('The log is intact: no entry was changed or removed.').waitFor()
  await clean(anna)
  await shotBoth(anna, 'audit')
  await anna.getByRole('combobox', { name: 'Outcome' }).selectOption('refused')
  await anna.getByLabel('User').fill('vera')
  await until('only refusals to vera are left', async () => {
    const rows = await anna.locator('tbody tr').allTextContents()
    return rows.length > 0 && rows.every((r) => r.includes('vera') && r.includes('refused'))
  })
  expect(new URL(anna.url()).search).toBe('?outcome=refused&user=vera')
  for (const theme of ['dark', 'sun']) {
    const p = await s.open('/audit', { in: anna })
    await p.evaluate((t) => localStorage.setItem('linktrial-theme', t), theme)
    await p.reload()
    await p.locator('tbody tr').first().waitFor()
    await clean(p)
    await p.goto(`${s.url}/users`)
    await p.locator('tbody tr').first().waitFor()
    await clean(p)
    await p.close()
  }
  expect(troubles).toEqual([])
})
