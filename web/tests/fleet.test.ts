// A lab from nothing, a preflight, a cut control link, and the protocols' page,
// all by hand in the browser.
import { afterAll, beforeAll, expect, test } from 'vitest'
import { clean, shot, shotBoth, sizes, type Station, station, troubles, until } from './harness'

let s: Station
beforeAll(async () => {
  s = await station('fleet')
})
afterAll(() => s.stop())

test('the fleet says how to connect a node, and a lab brings three', async () => {
  const page = await s.open('/fleet')
  await page.getByText('No node has connected yet').waitFor()
  await shotBoth(page, 'fleet-empty')
  await page.getByRole('link', { name: 'emulated lab' }).click()
  await page.getByText('No lab is running').waitFor()
  await clean(page)
  await shotBoth(page, 'lab-down')
  await page.getByRole('button', { name: 'Start the lab' }).click()
  await page.getByText('Emulated radios now').waitFor()
  await until('three agents are connected', () => (s.linktrial('nodes').match(/connected/g) ?? []).length >= 3)
  await clean(page)
  await shotBoth(page, 'lab')

  await page.goto(`${s.url}/fleet`)
  await page.getByText('3 of 3 nodes are connected.').waitFor()
  for (const node of ['client', 'relay', 'server']) await page.getByRole('article', { name: node }).waitFor()
})

test('a preflight is green, and names what is wrong when the control link is cut', async () => {
  const page = await s.open('/fleet')
  await page.getByText('No preflight yet').waitFor()
  await page.getByRole('button', { name: 'Start preflight' }).click()
  await page.getByText(/\d+ of \d+ checks passed/).waitFor()
  await until('the preflight has ended', async () => !(await page.getByRole('progressbar').isVisible()))
  await page.getByRole('button', { name: 'Show all checks' }).click()
  expect(await page.getByText('failed', { exact: true }).count()).toBe(0)
  // Reachability and round trips of every pair stand in the matrix.
  await until('the matrix is filled', async () => (await page.getByText(/✓ [\d.]+ m?s/).count()) >= 6)
  await clean(page)
  await shotBoth(page, 'fleet')
  for (const theme of ['dark', 'sun']) {
    const p = await s.open('/fleet', { theme })
    await p.getByText('3 of 3 nodes are connected.').waitFor()
    await clean(p)
  }

  const lab = await s.open('/lab')
  await lab.getByRole('button', { name: 'Cut the control link of relay' }).click()
  await lab.getByText('✂ cut').waitFor()
  await page.getByText('2 of 3 nodes are connected.').waitFor({ timeout: 170_000 })
  await lab.getByRole('button', { name: 'Join the control link of relay' }).click()
  await page.getByText('3 of 3 nodes are connected.').waitFor({ timeout: 170_000 })
  expect(troubles).toEqual([])
})

test('a preflight of a plan says of each treatment whether it works', async () => {
  const page = await s.open('/fleet')
  await page.getByLabel('Plan').selectOption('quickstart')
  await page.getByRole('button', { name: 'Start preflight' }).click()
  await page.getByRole('heading', { name: 'Treatments of quickstart' }).waitFor()
  await until('the preflight has ended', async () => !(await page.getByRole('progressbar').isVisible()))
  for (const treatment of ['tcp-cubic', 'sctp', 'udt', 'haul', 'quic'])
    expect(await page.getByRole('row', { name: new RegExp(`^${treatment} `) }).innerText()).toMatch(
      /works\s+16 KiB in [\d.]+ m?s over \w+ port \d+/,
    )
  await clean(page)
  for (const [name, width] of [
    ['laptop', 1366],
    ['tablet', 768],
    ['phone', 390],
  ] as const) {
    await page.setViewportSize({ width, height: 768 })
    await shot(page, `fleet-treatments-${name}`)
  }
  // A plan with faults is refused with the first of them.
  await page.setViewportSize(sizes.laptop)
  await fetch(`${s.url}/linktrial.v1.LibraryService/SavePlan`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ name: 'faulty', text: Buffer.from('name: faulty\nradio: none\n').toString('base64') }),
  })
  await page.reload()
  await page.getByLabel('Plan').selectOption('faulty')
  await page.getByRole('button', { name: 'Start preflight' }).click()
  await page.getByText(/faulty\.yaml:\d+:\d+: /).waitFor()
})

test('on the loopback nodes need no identity, and drivers are approved all the same', async () => {
  const page = await s.open('/fleet')
  await page.getByRole('link', { name: 'Identities' }).click()
  await page.getByText('listens on its own machine only, without encryption: nodes need no identity here.').waitFor()
  expect(await page.getByRole('button', { name: 'New token' }).count()).toBe(0)
  await clean(page)
  await shotBoth(page, 'identities-plain')
  await page.goto(`${s.url}/protocols`)
  await page.getByRole('link', { name: 'Approvals' }).click()
  await page
    .getByRole('row', { name: /^tcp sha256:[0-9a-f]{12}… folder .*the orchestrator’s own client, relay, server/ })
    .waitFor()
  await page.getByText('No node has a driver that is not accepted.').waitFor()
  // Nobody logs in here: who says so is asked.
  await page.getByRole('button', { name: 'Approve another' }).click()
  const box = page.getByRole('dialog')
  await box.getByLabel('Driver').fill(`tcp@sha256:${'5f'.repeat(32)}`)
  await box.getByLabel('Reason').fill('the one of tomorrow')
  await box.getByLabel('Your name, for the record').fill('Ada')
  await clean(page)
  await box.getByRole('button', { name: 'Approve', exact: true }).click()
  await page.getByRole('row', { name: /the one of tomorrow by Ada, / }).waitFor()
  expect(s.linktrial('protocol', 'approvals')).toMatch(/Ada/)
  expect(troubles).toEqual([])
})

// The driver of probes: its whole suite has every step of the page, and no link that is cut for 75 s as in tcp's.
test('a driver is held to the contract', async () => {
  const page = await s.open('/protocols?protocol=probe')
  await page.getByRole('heading', { name: 'Options' }).waitFor()
  await clean(page)
  await page.getByRole('button', { name: 'Run the conformance suite' }).click()
  await page.getByText(/The suite is running: [1-9]\d* of [1-9]\d+ checks/).waitFor({ timeout: 170_000 })
  expect(Number(await page.getByRole('progressbar').getAttribute('max'))).toBeGreaterThan(10)
  await shotBoth(page, 'protocols-running')
  await page.getByText(/\d+ passed, 0 failed/).waitFor({ timeout: 590_000 })
  await shotBoth(page, 'protocols')
  // The quick suite has no times of an earlier one, and leaves the last result as it is.
  const result = (await page.getByText(/\d+ passed, 0 failed/).textContent())!.match(
    /\d+ passed, 0 failed, \d+ skipped/,
  )![0]
  await page.getByRole('button', { name: 'Quick suite' }).click()
  await page.getByText(/The quick suite is running: ([2-9]|[1-9]\d+) of \d+ checks\./).waitFor({ timeout: 170_000 })
  await clean(page)
  await page.getByRole('button', { name: 'Stop the suite' }).click()
  await page.getByText(/The suite ended after \d+ of \d+ checks; its result is not stored/).waitFor()
  await page.reload()
  await page.getByText(result).waitFor()
  expect(troubles).toEqual([])
}, 660_000)

test('the lab is stopped again', async () => {
  const page = await s.open('/lab')
  await page.getByRole('button', { name: 'Stop the lab' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Stop', exact: true }).click()
  await page.getByText('No lab is running').waitFor()
})
