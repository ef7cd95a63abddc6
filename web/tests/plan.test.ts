// Plans in a browser: a new one by form and by text, its problems at their
// lines, order and time, conflicts, schedules, copies.
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { clean, scriptBytes, shot, shotBoth, sizes, type Station, station, troubles, until } from './harness'

let s: Station
beforeAll(async () => {
  s = await station('plan')
})
afterAll(() => s?.stop())

/** A call as a script makes it. */
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
const saved = async (name: string) =>
  Buffer.from((await call<{ text: string }>('LibraryService/GetPlan', { name })).text, 'base64').toString()
const text = (page: Page) => page.locator('.cm-content')
const written = (page: Page) => text(page).innerText()

test('the list has the plans that came with Linktrial', async () => {
  const page = await s.open('/plans')
  await page.getByRole('link', { name: 'quickstart', exact: true }).waitFor()
  await page.getByText('No start is scheduled').waitFor()
  await clean(page)
  await shotBoth(page, 'plans')
  await page.getByLabel('Find a plan').fill('decola')
  await expect.poll(() => page.locator('tbody tr').count()).toBe(1)
  expect(page.url()).toContain('find=decola')
})

test('a new plan is written by form and by text', async () => {
  const page = await s.open('/plans')
  await page.getByRole('button', { name: 'New plan' }).click()
  const name = page.getByRole('dialog').getByLabel('Name')
  await name.fill('Not Good')
  await page.getByRole('button', { name: 'Create' }).click()
  await page.getByText('Lower-case letters, digits and hyphens, at most 48.').waitFor()
  await name.fill('field-day')
  await page.getByRole('button', { name: 'Create' }).click()
  await page.waitForURL('**/plans/field-day')
  await page.getByText('field-day: 1 run, 1 treatment, 10 iterations, 10 trials').waitFor()
  await clean(page)

  // The form edits the text.
  await page.getByLabel('Iterations').fill('4')
  await page.getByLabel('Iterations').press('Enter')
  await page.getByText('4 iterations, 4 trials').waitFor()
  expect(await written(page)).toContain('iterations: 4')
  await page.getByLabel('Add a protocol').selectOption('udt')
  await page.getByText('2 treatments, 4 iterations, 8 trials').waitFor()
  expect(await written(page)).toContain('- {name: udt, label: UDT, protocol: udt}')
  await page.getByLabel('Set another option of TCP CUBIC').selectOption('mss')
  await page.getByLabel('mss', { exact: true }).fill('500 B')
  await page.getByLabel('mss', { exact: true }).press('Enter')
  await expect.poll(() => written(page)).toContain('mss: 500 B')
  // A problem stands at its field and describes it; starting leads there.
  const mss = page.getByLabel('mss', { exact: true })
  await mss.fill('wide')
  await mss.press('Enter')
  await page.getByText('1 problem').waitFor()
  await expect.poll(() => mss.getAttribute('aria-invalid')).toBe('true')
  const described = (await mss.getAttribute('aria-describedby'))!.split(' ')[0]!
  expect(await page.locator(`[id="${described}"]`).innerText()).toContain('"wide"')
  await clean(page)
  await shotBoth(page, 'plan-field')
  await page.getByLabel('Iterations').focus()
  await page.getByRole('button', { name: 'Start now' }).click()
  expect(await mss.evaluate((e) => e === document.activeElement)).toBe(true)
  await page.getByLabel('Iterations').focus()
  await page.getByRole('button', { name: /^field/ }).click()
  expect(await mss.evaluate((e) => e === document.activeElement)).toBe(true)
  await mss.fill('500 B')
  await mss.press('Enter')
  await page.getByText('2 treatments, 4 iterations, 8 trials').waitFor()
  expect(await mss.getAttribute('aria-invalid')).toBeNull()
  await page.getByText('Topologies', { exact: true }).click()
  await page.getByRole('checkbox', { name: /^flag-pole/ }).check()
  await page.getByText('2 runs, 2 treatments').waitFor()
  await page.getByLabel('Set or vary another parameter').selectOption('rate')
  await page.getByLabel('Values, with commas').fill('1 Mbit/s, 2 Mbit/s')
  await page.getByLabel('Values, with commas').press('Enter')
  await page.getByText('4 runs, 2 treatments').waitFor()

  // The text edits the form, and a problem is marked at its line.
  await text(page).click()
  await page.keyboard.press('Control+End')
  await page.keyboard.type('title: Day in the field\nordr: random\n')
  await page.getByText('1 problem').waitFor()
  expect(await page.getByLabel('Title', { exact: true }).inputValue()).toBe('Day in the field')
  await expect.poll(() => page.locator('.cm-bad-line').innerText()).toContain('ordr')
  await clean(page)
  await shotBoth(page, 'plan-problem')
  await page.getByLabel('Iterations').focus()
  await page
    .getByRole('button', { name: /^line \d+$/ })
    .first()
    .click()
  await expect.poll(() => page.locator('.cm-activeLine').innerText()).toContain('ordr')

  // What cannot be read at all rests the form.
  await page.keyboard.press('End')
  await page.keyboard.type(': [')
  await page.getByText('The form is disabled until the text can be parsed').waitFor()
  expect(await page.getByLabel('Iterations').isDisabled()).toBe(true)
  await page.keyboard.press('Home')
  await page.keyboard.press('Shift+End')
  await page.keyboard.type('notes: [typed]')
  await page.getByText('4 runs, 2 treatments, 4 iterations').waitFor()
  await shotBoth(page, 'plan-form')

  await page.getByRole('tab', { name: 'Order and time' }).click()
  await page.getByText('started now, it would finish at').waitFor()
  expect(page.url()).toContain('show=order')
  expect(await page.getByRole('table').locator('tbody tr').count()).toBe(4)
  await clean(page)
  await shotBoth(page, 'plan-order')

  await page.getByRole('button', { name: 'Save', exact: true }).click()
  await page.getByText('Saved as revision 2.').waitFor()
  expect(await saved('field-day')).toContain('notes: [typed]')
  await page.reload()
  await page.getByText('started now, it would finish at').waitFor()
  expect(troubles).toEqual([])
})

test('probes and rules of validity are made in the form', async () => {
  await call('LibraryService/SavePlan', {
    name: 'voice-day',
    text: base64(`# Kept as it stands.
name: voice-day
radio: prc-117g-anw2c
topology: vip-lot
size: 64 KiB
treatments:
  - {name: tcp, label: TCP, protocol: tcp, dscp: AF11} # bulk
iterations: 2
seed: 1
`),
  })
  const page = await s.open('/plans/voice-day')
  await page.getByText('1 run, 1 treatment, 2 iterations, 2 trials').waitFor()
  expect(await page.getByLabel('DSCP of its packets').inputValue()).toBe('AF11')
  const enter = async (label: string | RegExp, value: string, in_ = page.locator('form, .form')) => {
    await in_.getByLabel(label, { exact: typeof label === 'string' }).fill(value)
    await in_.getByLabel(label, { exact: typeof label === 'string' }).press('Enter')
  }

  // A probe beside transfers, whose treatment gets its name afterwards; and one alone.
  await page.getByLabel('Add a probe').selectOption({ label: 'a treatment of Probe' })
  const group = (name: string, n = 0) => page.getByRole('group', { name, exact: true }).nth(n)
  await group('2. Probe').getByLabel('Name', { exact: true }).fill('voice')
  await group('2. Probe').getByLabel('Name', { exact: true }).press('Enter')
  await expect.poll(() => written(page)).toContain('{treatment: voice}')
  await page.getByLabel('Set another option of Probe').selectOption('pattern')
  await page.locator('[data-field="treatments[1].options.pattern"] select').selectOption('voip-g711')
  await page.getByLabel('Add a probe').selectOption({ label: 'Probe' })
  // The same way twice is refused, at the field.
  const second = group('Probe', 1)
  await expect.poll(() => second.getByLabel('Treatment').getAttribute('aria-invalid')).toBe('true')
  await second.getByText('is given twice from the client').waitFor()
  await second.getByLabel('From').selectOption('server → client')
  await second.getByLabel('Beside transfers').selectOption('no')
  await second.getByText('runs neither beside transfers nor alone').waitFor()
  await enter('Alone, for', '5 minuts', second)
  await expect.poll(() => second.getByLabel('Alone, for').getAttribute('aria-invalid')).toBe('true')
  await enter('Alone, for', '20s', second)
  await page.getByText('1 run, 2 treatments, 2 iterations, 4 trials').waitFor()

  // Rules: one number, two limits, a reading.
  await page.getByLabel('Add a rule').selectOption('clock_step')
  await enter('Step of a clock: At most', '50 parsecs')
  await expect.poll(() => page.getByLabel('Step of a clock: At most').getAttribute('aria-invalid')).toBe('true')
  await enter('Step of a clock: At most', '50ms')
  await page.getByLabel('Add a rule').selectOption('temperature')
  await enter('Temperature of a node: At least', '-5 °C')
  await page.getByLabel('Add a rule').selectOption('telemetry')
  await enter('Reading', 'snr')
  await enter('snr: At least', '10 dB')
  await page.getByText('1 run, 2 treatments, 2 iterations, 4 trials').waitFor()
  const made = `# Kept as it stands.
name: voice-day
radio: prc-117g-anw2c
topology: vip-lot
size: 64 KiB
treatments:
  - {name: tcp, label: TCP, protocol: tcp, dscp: AF11} # bulk
  - {name: voice, label: Probe, protocol: probe, options: {pattern: voip-g711}}
probes:
  - {treatment: voice}
  - {treatment: voice, from: server, beside: false, alone: 20s}
iterations: 2
seed: 1
valid: {clock_step: 50ms, temperature: {max: 85 °C, min: -5 °C}, telemetry: [{reading: snr, min: 10 dB}]}
`
  await page.getByRole('button', { name: 'Save', exact: true }).click()
  await page.getByText('Saved as revision 2.').waitFor()
  expect(await saved('voice-day')).toBe(made)

  // Opened again, the form has the same; and takes it away again.
  await page.reload()
  await page.getByText('1 run, 2 treatments, 2 iterations, 4 trials').waitFor()
  expect(await group('Probe', 0).getByLabel('From').inputValue()).toBe('client')
  expect(await group('Probe', 0).getByLabel('Beside transfers').inputValue()).toBe('true')
  expect(await group('Probe', 1).getByLabel('From').inputValue()).toBe('server')
  expect(await group('Probe', 1).getByLabel('Beside transfers').inputValue()).toBe('false')
  expect(await group('Probe', 1).getByLabel('Alone, for').inputValue()).toBe('20s')
  expect(await page.getByLabel('Step of a clock: At most').inputValue()).toBe('50ms')
  expect(await page.getByLabel('Temperature of a node: At least').inputValue()).toBe('-5 °C')
  expect(await page.getByLabel('Temperature of a node: At most').inputValue()).toBe('85 °C')
  expect(await page.getByLabel('snr: At least').inputValue()).toBe('10 dB')
  await clean(page)
  for (const width of [390, 768, 1366]) {
    await page.setViewportSize({ width, height: 768 })
    await page.getByRole('heading', { name: 'Probes' }).scrollIntoViewIfNeeded()
    expect(await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth)).toBeLessThanOrEqual(0)
    await shot(page, `plan-probes-${width}`)
  }
  for (const rule of ['Step of a clock', 'Temperature of a node', 'snr'])
    await page.getByRole('button', { name: new RegExp(`^Remove the rule (of )?${rule}$`) }).click()
  await page.getByRole('button', { name: 'Remove probe 2, Probe' }).click()
  await page.getByRole('button', { name: 'Save', exact: true }).click()
  await page.getByText('Saved as revision 3.').waitFor()
  expect(await saved('voice-day')).toBe(
    made.replace(/ {2}- \{treatment: voice, from.*\n/, '').replace(/valid: .*\n/, ''),
  )
  expect(troubles).toEqual([])
})

test('a plan of the paper keeps what the form does not know', async () => {
  const mine = readFileSync(resolve(import.meta.dirname, '../../plans/decola-2006.yaml'), 'utf8')
  const page = await s.open('/plans/decola-2006')
  await page.getByRole('button', { name: `line ${mine.split('\n').indexOf('groups:') + 1}`, exact: true }).waitFor()
  await page.getByText('3 groups: test-1, test-2, test-3').click()
  await page.getByLabel('Iterations').fill('5')
  await page.getByLabel('Iterations').press('Enter')
  await page.getByText('not saved').waitFor()
  await page.getByRole('button', { name: 'Save as a copy' }).click()
  await page.getByRole('button', { name: 'Save the copy' }).click()
  await page.waitForURL('**/plans/decola-2006-copy')
  expect(await saved('decola-2006-copy')).toBe(
    mine.replace('name: decola-2006\n', 'name: decola-2006-copy\n').replace('\niterations: 3\n', '\niterations: 5\n'),
  )
})

test('a save in between is not overwritten unseen', async () => {
  const page = await s.open('/plans/field-day')
  await page.getByText('revision 2').waitFor()
  const plan = await call<{ plan: { revision: number } }>('LibraryService/GetPlan', { name: 'field-day' })
  await call('LibraryService/SavePlan', {
    name: 'field-day',
    text: base64((await saved('field-day')).replace('iterations: 4', 'iterations: 9')),
    revision: plan.plan.revision,
  })
  await page.getByLabel('Title', { exact: true }).fill('Mine')
  await page.getByLabel('Title', { exact: true }).press('Enter')
  await page.keyboard.press('Control+s')
  const dialog = page.getByRole('dialog')
  await dialog.getByText('iterations: 9').waitFor()
  await dialog.getByText('title: Mine').waitFor()
  await clean(page)
  await shot(page, 'plan-conflict')
  await dialog.getByRole('button', { name: 'Overwrite with mine' }).click()
  await page.getByText('Saved as revision 4.').waitFor()
  expect(await saved('field-day')).toContain('title: Mine')
  expect(await saved('field-day')).toContain('iterations: 4')
})

test('a plan is scheduled, and its schedule cancelled', async () => {
  const page = await s.open('/plans/field-day')
  await page.getByRole('button', { name: 'Schedule' }).click()
  const [day, time] = [page.getByLabel('Day, UTC'), page.getByLabel('Time, UTC, 24 hours')]
  await day.fill('2020-01-01')
  await time.fill('25:00')
  await page.getByText('Expected hours and minutes, such as 14:30.').waitFor()
  expect(await time.getAttribute('aria-invalid')).toBe('true')
  await time.fill('10:00')
  await page.getByRole('dialog').getByRole('button', { name: 'Schedule' }).click()
  await page.getByText('That time has passed.').waitFor()
  // In 30 days, in UTC; the clock on the viewer's wall stands below.
  const at = new Date(Math.floor(Date.now() / 60_000) * 60_000 + 30 * 86_400_000)
  await day.fill(at.toISOString().slice(0, 10))
  await time.fill(at.toISOString().slice(11, 16))
  const wall = at.toLocaleTimeString('en-GB', { timeZone: 'Europe/Berlin' })
  await page.getByText(new RegExp(`, ${wall} CES?T$`)).waitFor()
  await page.getByLabel('Your name, for the record').fill('Ada')
  await clean(page)
  await page.getByRole('dialog').getByRole('button', { name: 'Schedule' }).click()
  await page.getByRole('dialog').waitFor({ state: 'detached' })
  const { schedules } = await call<{ schedules: { at: string; by: string }[] }>('LibraryService/ListSchedules', {})
  expect(schedules).toMatchObject([{ by: 'Ada', state: 'waiting' }])
  expect(new Date(schedules[0]!.at)).toEqual(at)
  await page.goto(`${s.url}/plans`)
  await page.getByRole('cell', { name: /waiting/ }).waitFor()
  await page.getByRole('link', { name: 'quickstart', exact: true }).waitFor()
  await shot(page, 'plans-scheduled')
  await page.getByRole('button', { name: 'Cancel' }).click()
  await page.getByRole('cell', { name: /cancelled/ }).waitFor()
})

test('a plan is scheduled by a rule, which is paused, resumed and removed', async () => {
  const page = await s.open('/plans/field-day')
  await page.getByRole('button', { name: 'Schedule' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Repeatedly').check()
  await dialog.locator('select').first().selectOption('weekdays')
  await dialog.getByLabel('Time of day').fill('02:30')
  await dialog.getByLabel('Zone').fill('Europe/Nowhere')
  await dialog.getByText('zone "Europe/Nowhere", expected').waitFor()
  await dialog.getByLabel('Zone').fill('Asia/Tokyo')
  await dialog
    .getByText(/(Mon|Tue|Wed|Thu|Fri) \d{4}-\d\d-\d\d 02:30 in Asia\/Tokyo/)
    .nth(2)
    .waitFor()
  await shot(page, 'plan-schedule-rule')
  await clean(page)
  await dialog.getByRole('button', { name: 'Schedule' }).click()
  await dialog.waitFor({ state: 'detached' })
  await page.getByText('field-day starts weekdays 02:30 Asia/Tokyo.').waitFor()
  await page.goto(`${s.url}/plans`)
  const row = page.getByRole('row', { name: /weekdays 02:30 Asia\/Tokyo/ })
  await row.getByText('active').waitFor()
  await page.getByRole('cell', { name: /^waiting/ }).waitFor() // its next start
  await shot(page, 'plans-repeated')
  await clean(page)
  await row.getByRole('button', { name: 'Pause' }).click()
  await row.getByText('paused').waitFor()
  await page.getByRole('cell', { name: /^waiting/ }).waitFor({ state: 'detached' })
  await row.getByRole('button', { name: 'Resume' }).click()
  await row.getByText('active').waitFor()
  await row.getByRole('button', { name: 'Remove' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click()
  await row.waitFor({ state: 'detached' })
})

test('without nodes nothing starts, and the page says why', async () => {
  const page = await s.open('/plans/field-day')
  await page.getByRole('button', { name: 'Start now' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByText('No node is connected').waitFor()
  await dialog.getByRole('button', { name: 'Start', exact: true }).click()
  await dialog.getByRole('alert').waitFor()
  await clean(page)
  await shot(page, 'plan-start')
})

test('a plan is copied and deleted', async () => {
  const page = await s.open('/plans')
  await page.getByRole('button', { name: 'Copy field-day' }).click()
  await page.getByRole('button', { name: 'Copy', exact: true }).click()
  await page.waitForURL('**/plans/field-day-copy')
  await page.goto(`${s.url}/plans`)
  await page.getByRole('button', { name: 'Delete field-day-copy' }).click()
  await page.getByRole('button', { name: 'Delete', exact: true }).click()
  await page.getByText('field-day-copy is deleted.').waitFor()
  await until(
    'the plan is gone',
    async () =>
      !(await call<{ plans: { name: string }[] }>('LibraryService/ListPlans', {})).plans.some(
        (p) => p.name === 'field-day-copy',
      ),
  )
})

test('changes that are not saved are not left unasked', async () => {
  const page = await s.open('/plans/field-day')
  await page.getByLabel('Title', { exact: true }).fill('Other')
  await page.getByLabel('Title', { exact: true }).press('Enter')
  await page.getByText('not saved').waitFor()
  const asked: string[] = []
  page.on('dialog', (d) => {
    asked.push(d.message())
    void d.dismiss()
  })
  await page.getByRole('navigation').getByRole('link', { name: 'Runs' }).click()
  await expect.poll(() => asked.length).toBe(1)
  expect(page.url()).toContain('/plans/field-day')
})

test('the other screens', async () => {
  for (const theme of ['dark', 'sun']) {
    const page = await s.open('/plans/quickstart', { theme })
    await page.getByText('18 trials').waitFor()
    await text(page).waitFor()
    await clean(page)
    await shot(page, `plan-${theme}`)
  }
  const page = await s.open('/plans/quickstart')
  await text(page).waitFor()
  const bytes = await scriptBytes(page)
  console.log(`plan editor: ${(bytes / 1024).toFixed(0)} KB of compressed scripts`)
  expect(bytes).toBeLessThan(500 * 1024)
  await page.setViewportSize(sizes.tablet)
  await page.getByRole('tab', { name: 'Text' }).click()
  await text(page).waitFor()
  await shot(page, 'plan-text-tablet')
  expect(troubles).toEqual([])
})
