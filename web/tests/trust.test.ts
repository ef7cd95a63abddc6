// Node identities and approvals of drivers in a browser, at an orchestrator that
// speaks TLS, with agents that enrol by the tokens of the page.
import { appendFileSync, cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { bin, clean, shot, shotBoth, type Station, station, troubles, until } from './harness'

let s: Station
let folder: string
let anna: Page
const secret = 'correct horse battery'
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'linktrial-trust-'))
  s = await station('trust', '--tls')
  s.linktrialWith(`${secret}\n`, 'user', 'add', 'anna', '--role', 'admin', '--password-stdin')
  s.linktrialWith(`${secret}\n`, 'login', 'anna', '--password-stdin')
  for (const [name, role] of [
    ['dirk', 'director'],
    ['vera', 'viewer'],
  ] as const)
    s.linktrialWith(`${secret}\n`, 'user', 'add', name, '--role', role, '--password-stdin')
})
afterAll(async () => {
  await s?.stop()
  if (folder) rmSync(folder, { recursive: true, force: true })
})

async function login(user: string, path: string): Promise<Page> {
  const page = await s.open(path)
  await page.getByLabel('Name', { exact: true }).fill(user)
  await page.getByLabel('Password', { exact: true }).fill(secret)
  await page.getByRole('button', { name: 'Log in' }).click()
  await page.getByRole('link', { name: `Account of ${user}` }).waitFor()
  return page
}
const row = (page: Page, words: string | RegExp) => page.getByRole('row', { name: words })
/** A token as the page shows it, in a file as the node gets it. */
async function token(page: Page, node: string): Promise<string> {
  await page.getByRole('button', { name: 'New token', exact: true }).click()
  await page.getByLabel('Node', { exact: true }).fill(node)
  await page.getByRole('button', { name: 'Create' }).click()
  const text = await page.getByLabel('The token', { exact: true }).inputValue()
  expect(text.startsWith(`linktrial-node-1:${node}:`)).toBe(true)
  const file = join(folder, `${node}.token`)
  writeFileSync(file, `${text}\n`)
  return file
}
function agent(node: string, role: string, tokenFile: string, ...more: string[]) {
  s.start(
    'agent',
    '--name',
    node,
    '--role',
    role,
    '--radio',
    'mpu4',
    '--radio-address',
    '127.0.0.1',
    '--device',
    'lo',
    '--token-file',
    tokenFile,
    ...more,
  )
}

test('empty pages name what works here, and no lab', async () => {
  anna = await login('anna', '/')
  await anna.getByText('an agent on each laptop').waitFor()
  expect(await anna.getByRole('link', { name: 'emulated lab' }).count()).toBe(0)
  await clean(anna)
  await anna.goto(`${s.url}/fleet`)
  await anna
    .getByText(`linktrial agent --role client|relay|server --radio-address ADDRESS --orchestrator ${s.url}`)
    .waitFor()
  await clean(anna)
  await shotBoth(anna, 'fleet-empty-tls')
  await anna.goto(`${s.url}/lab`)
  await anna.getByText('No lab can run here').waitFor()
  await clean(anna)
  await anna.goto(`${s.url}/fleet`)
  await anna.getByRole('link', { name: 'Identities', exact: true }).first().click()
})

test('a machine becomes a node by a token of the page', async () => {
  await anna.getByText('No node yet').waitFor()
  expect(await anna.getByLabel('Fingerprint of the authority').inputValue()).toMatch(/^[0-9a-f]{64}$/)
  await clean(anna)
  await shotBoth(anna, 'identities-empty')
  await anna.getByRole('button', { name: 'New token', exact: true }).click()
  await anna.getByRole('button', { name: 'Create' }).click()
  await anna.getByText('Name the node').waitFor()
  await anna.getByLabel('Node', { exact: true }).fill('a b')
  await anna.getByRole('button', { name: 'Create' }).click()
  await anna.getByRole('dialog').getByText(/"a b"/).waitFor() // in the orchestrator's words
  await clean(anna)
  await anna.keyboard.press('Escape')

  const file = await token(anna, 'client')
  const command = await anna.getByLabel('The command', { exact: true }).inputValue()
  expect(command).toBe(`linktrial node enrol --orchestrator ${s.url} --token-file -`)
  await anna.getByText('the address at which the node reaches it').waitFor()
  await clean(anna)
  await shot(anna, 'identities-token', false)
  await anna.getByRole('button', { name: 'Done' }).click()
  expect(await anna.content()).not.toContain('linktrial-node-1:')
  await row(anna, /^client.*token created.*made.*by anna/).waitFor()

  agent('client', 'client', file)
  await row(anna, /^client.*enrolled.*connected.*valid until.*none/).waitFor()
  // It was good for one use.
  expect(() =>
    s.linktrial('node', 'enrol', '--orchestrator', s.url, '--token-file', file, '--state', join(folder, 'again')),
  ).toThrow(/it was used already/)
})

test('an open token is withdrawn, and a certificate stays good', async () => {
  const server = await token(anna, 'server')
  await anna.getByRole('button', { name: 'Done' }).click()
  await anna.getByRole('button', { name: 'Withdraw tokens of server' }).click()
  await anna.getByRole('heading', { name: 'Withdraw the open tokens of server?' }).waitFor()
  await anna.getByRole('button', { name: 'Withdraw', exact: true }).click()
  await anna.getByText('Give a reason').waitFor()
  await anna.getByLabel('Reason').fill('to the wrong laptop')
  await anna.getByRole('button', { name: 'Withdraw', exact: true }).click()
  await anna.getByText('Open tokens of server are withdrawn: 1.').waitFor()
  await row(anna, /^server/).waitFor({ state: 'detached' })
  expect(() =>
    s.linktrial('node', 'enrol', '--orchestrator', s.url, '--token-file', server, '--state', join(folder, 'server')),
  ).toThrow(/it was withdrawn at/)

  const second = await token(anna, 'client')
  await anna.getByRole('button', { name: 'Done' }).click()
  await anna.getByRole('button', { name: 'Withdraw tokens of client' }).click()
  await anna.getByText('The node’s certificate stays valid.').waitFor()
  await anna.getByLabel('Reason').fill('made by mistake')
  await anna.getByRole('button', { name: 'Withdraw', exact: true }).click()
  await row(anna, /^client.*enrolled.*connected.*valid until.*none/).waitFor()
  expect(() =>
    s.linktrial('node', 'enrol', '--orchestrator', s.url, '--token-file', second, '--state', join(folder, 'second')),
  ).toThrow(/it was withdrawn at/)
})

test('a driver of another digest waits until somebody approves it', async () => {
  const drivers = join(folder, 'drivers')
  cpSync(join(bin, 'drivers'), drivers, { recursive: true })
  appendFileSync(join(drivers, 'tcp/driver.yaml'), '# another build\n')
  const file = await token(anna, 'other')
  await anna.getByRole('button', { name: 'Done' }).click()
  agent('other', 'server', file, '--drivers', drivers)
  await row(anna, /^other.*connected/).waitFor()

  await anna.goto(`${s.url}/protocols/approvals`)
  const waiting = anna.getByRole('region', { name: 'Waiting' })
  const accepted = anna.getByRole('region', { name: 'Accepted' })
  await waiting.getByRole('row', { name: /^tcp sha256:[0-9a-f]{12}… folder .*other/ }).waitFor()
  expect(await waiting.locator('tbody tr').count()).toBe(1)
  await accepted.getByRole('row', { name: /^tcp.*the orchestrator’s own.*client/ }).waitFor()
  await clean(anna)
  await shotBoth(anna, 'approvals-waiting')
  await waiting.getByRole('button', { name: 'Approve tcp' }).click()
  await anna.getByRole('button', { name: 'Approve', exact: true }).click()
  await anna.getByText('Give a reason').waitFor()
  await anna.getByLabel('Reason').fill('build of the vendor’s laptop')
  await clean(anna)
  await shot(anna, 'approvals-approve', false)
  await anna.getByRole('button', { name: 'Approve', exact: true }).click()
  await anna.getByText('New run sheets accept this driver of tcp.').waitFor()
  await accepted.getByRole('row', { name: /^tcp.*build of the vendor’s laptop by anna, .*other/ }).waitFor()
  await waiting.getByText('No node has a driver that is not accepted.').waitFor()
  expect(s.linktrial('protocol', 'approvals')).toContain('build of the vendor’s laptop')

  // One that no node has yet, an image.
  await anna.getByRole('button', { name: 'Approve another' }).click()
  const box = anna.getByRole('dialog')
  await box.getByLabel('Driver').fill('tcp@image:sha256:12')
  await box.getByLabel('Reason').fill('from the registry of the site')
  await box.getByRole('button', { name: 'Approve', exact: true }).click()
  await box.getByText('Expected protocol@digest').waitFor()
  await box.getByLabel('Driver').fill(`nosuch@image:sha256:${'4e'.repeat(32)}`)
  await box.getByRole('button', { name: 'Approve', exact: true }).click()
  await box.getByText('no protocol "nosuch"').waitFor()
  await box.getByLabel('Driver').fill(`udt@image:sha256:${'4e'.repeat(32)}`)
  await box.getByRole('button', { name: 'Approve', exact: true }).click()
  await accepted
    .getByRole('row', {
      name: /^udt image:sha256:4e4e4e4e4e4e… image from the registry of the site by anna, .*no node/,
    })
    .waitFor()
  await clean(anna)
  await shotBoth(anna, 'approvals')

  await accepted.getByRole('button', { name: 'Withdraw tcp' }).click()
  await anna.getByText('other has it: plans that are started from now on are refused').waitFor()
  await clean(anna)
  await anna.getByRole('dialog').getByRole('button', { name: 'Withdraw', exact: true }).click()
  await waiting.getByRole('row', { name: /^tcp.*other/ }).waitFor()
  expect(s.linktrial('protocol', 'approvals')).not.toContain('build of the vendor’s laptop')
})

test.each(['vera', 'dirk'])('%s sees both, and is told what takes an admin', async (user) => {
  const page = await login(user, '/fleet/identities')
  const why = `${user} is a ${user === 'vera' ? 'viewer' : 'director'}: this takes an admin`
  await row(page, /^client.*enrolled/).waitFor()
  await page.getByText(`${why}.`, { exact: true }).waitFor()
  for (const name of [/^New token \(/, /^New token for client/, /^Revoke client/]) {
    const button = page.getByRole('button', { name })
    expect([await button.isDisabled(), await button.getAttribute('title')]).toEqual([true, why])
  }
  await clean(page)
  if (user === 'vera') await shotBoth(page, 'identities-viewer')
  await page.goto(`${s.url}/protocols/approvals`)
  await row(page, /^tcp.*other/).waitFor()
  await page.getByText(`${why}.`, { exact: true }).waitFor()
  for (const name of [/^Approve another/, /^Approve tcp/, /^Withdraw udt/])
    expect(await page.getByRole('button', { name }).isDisabled()).toBe(true)
  await clean(page)
  // The orchestrator says the same to who asks it past the page.
  for (const method of [
    'NodeService/CreateNodeToken',
    'NodeService/RevokeNode',
    'JoinService/OpenJoining',
    'JoinService/GetJoining',
    'TrustService/ApproveDriver',
    'TrustService/UnapproveDriver',
  ]) {
    const status = await page.evaluate(
      async (m) =>
        (
          await fetch(`/linktrial.v1.${m}`, {
            method: 'POST',
            headers: { 'content-type': 'application/json' },
            body: '{}',
          })
        ).status,
      method,
    )
    expect(status).toBe(403)
  }
  await page.context().close()
})

test('a revoked node is cut off, and can enrol again', async () => {
  await anna.goto(`${s.url}/fleet`)
  await anna.getByText('2 of 2 nodes are connected.').waitFor()
  await anna.getByRole('link', { name: 'Identities' }).click()
  await shotBoth(anna, 'identities')
  await anna.getByRole('button', { name: 'Revoke client' }).click()
  await anna.getByText('the node is connected and will be disconnected').waitFor()
  await anna.getByLabel('Reason').fill('laptop lost')
  await clean(anna)
  await shot(anna, 'identities-revoke', false)
  await anna.getByRole('button', { name: 'Revoke', exact: true }).click()
  await anna.getByText('client is refused from now on.').waitFor()
  await row(anna, /^client.*revoked.*by anna: laptop lost/).waitFor()
  await until('it is connected no more', async () => !(await row(anna, /^client/).innerText()).includes('connected'))
  expect(
    await row(anna, /^client/)
      .getByRole('button', { name: /^Revoke/ })
      .count(),
  ).toBe(0)
  expect(await row(anna, /^other.*enrolled.*connected/).count()).toBe(1)

  await row(anna, /^client/)
    .getByRole('button', { name: 'New token for client' })
    .click()
  expect(await anna.getByLabel('Node', { exact: true }).inputValue()).toBe('client')
  await anna.getByLabel('Node', { exact: true }).press('Enter')
  await anna.getByLabel('The token', { exact: true }).waitFor()
  await anna.keyboard.press('Escape')
  await row(anna, /^client.*revoked.*until/).waitFor()
  await clean(anna)
  await shotBoth(anna, 'identities-revoked')
})

test('the log has it as from the command line', async () => {
  await anna.goto(`${s.url}/audit`)
  await row(anna, /anna.*Create node token.*client.*done/)
    .first()
    .waitFor()
  await row(anna, /anna.*Revoke node.*client.*laptop lost.*done/).waitFor()
  await row(anna, /anna.*Approve driver.*build of the vendor’s laptop.*done/).waitFor()
  await row(anna, /anna.*Unapprove driver.*done/).waitFor()
  await row(anna, /vera.*Revoke node.*refused/)
    .first()
    .waitFor()
  expect(await anna.content()).not.toContain('linktrial-node-1:')
})

test('a laptop joins by the code of the page', async () => {
  await anna.goto(`${s.url}/fleet`)
  await anna.getByRole('button', { name: 'Add a laptop' }).click()
  const box = anna.getByRole('dialog')
  await box.getByRole('button', { name: 'Open a code' }).click()
  await box.getByText('None yet.').waitFor()
  await box.getByText(/^\d+ min \d+ s left/).waitFor()
  await box.getByText('closes after 5 wrong tries').waitFor()
  const command = await box.getByLabel('The command').inputValue()
  expect(command).toMatch(/^linktrial join \d{4}-[a-z]+-[a-z]+$/)
  await clean(anna)
  await shotBoth(anna, 'fleet-join')
  const code = command.replace('linktrial join ', '')
  const join_ = (typed: string) =>
    s.linktrial(
      'join',
      typed,
      '--address',
      new URL(s.url).host,
      '--name',
      'laptop-b',
      '--state',
      join(folder, 'laptop-b'),
    )
  expect(() => join_('0000-alpha-bravo')).toThrow(/the code was not accepted/)
  await box.getByText('closes after 4 wrong tries').waitFor()
  expect(join_(code.toUpperCase().replaceAll('-', ' '))).toContain('as laptop-b')
  await box.getByRole('listitem').filter({ hasText: 'laptop-b' }).getByText('enrolled').waitFor()
  await box.getByRole('button', { name: 'Close the code' }).click()
  await box.getByText('The code was closed.').waitFor()
  await clean(anna)
  await box.getByRole('button', { name: 'Done' }).click()
})

test('the other screens', async () => {
  for (const theme of ['dark', 'sun']) {
    for (const path of ['/fleet/identities', '/protocols/approvals']) {
      const page = await s.open(path, { in: anna })
      await page.evaluate((t) => localStorage.setItem('linktrial-theme', t), theme)
      await page.reload()
      await page.locator('tbody tr').first().waitFor()
      await clean(page)
      await shot(page, `${path.split('/').at(-1)}-${theme}`)
      await page.close()
    }
  }
  expect(troubles).toEqual([])
})
