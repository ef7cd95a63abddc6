// The results of a campaign that was really run: figures, tables, curves and
// every attempt, what is downloaded, and how fast it all appears.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Download, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { clean, scriptBytes, shot, shotBoth, shotNarrow, sizes, type Station, stored, troubles, until } from './harness'

// Two treatments and one that does not exist, over three loss rates that come and
// go: the last is so high that no transfer ends in time, so that there are failures to show.
const plan = (losses: string) => `name: browser
title: Results in a browser
radio: lttcp-on-off
topology: vip-lot
size: 128 KiB
treatments:
  - {name: tcp-cubic, label: TCP CUBIC, protocol: tcp, options: {congestion: cubic}}
  - {name: tcp-bbr, label: TCP BBR, protocol: tcp, options: {congestion: bbr}}
  - {name: scps-tp, label: SCPS-TP, protocol: scps-tp, missing: "it is not built yet"}
sweep:
  - {name: loss, set: channel.loss, values: [${losses}]}
iterations: 3
order: fixed
seed: 7
limits: {connect: 10s, transfer: 4s, attempts: 2}
control: out-of-band
sample_interval: 20ms
published:
  source: "somewhere, Table 1"
  rows:
    - {where: {loss: 0}, topology: vip-lot, radio: lttcp-on-off, treatment: tcp-cubic, n: 10, average: 900, maximum: 1000, minimum: 800, sd: 40}
`

let s: Station
let folder: string
const ids: string[] = []

beforeAll(async () => {
  s = await stored(
    'results',
    ['--radio', 'lttcp-on-off', '--topology', 'vip-lot'],
    ['0', '0, 0.01, 0.4'].map((losses) => plan(losses)),
  )
  folder = mkdtempSync(join(tmpdir(), 'linktrial-results-'))
  const { campaigns } = await until('the campaigns are listed', async () => {
    const r = await fetch(`${s.url}/linktrial.v1.ResultService/ListCampaigns`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{}',
    })
    return (await r.json()) as { campaigns: { id: string }[] }
  })
  ids.push(...campaigns.map((c) => c.id))
}, 300_000)
afterAll(async () => {
  await s?.stop()
  if (folder) rmSync(folder, { recursive: true, force: true })
})

const drawn = (page: Page) => page.locator('[data-drawn]').first().waitFor()
async function saved(page: Page, press: () => Promise<void>): Promise<{ name: string; content: Buffer }> {
  const [d] = (await Promise.all([page.waitForEvent('download'), press()])) as [Download, void]
  return { name: d.suggestedFilename(), content: readFileSync(await d.path()) }
}

test('campaigns are found, ticked and compared', async () => {
  const page = await s.open('/results')
  await page.getByRole('columnheader', { name: 'Campaign' }).waitFor()
  await clean(page)
  await shotBoth(page, 'results-choose')
  await page.getByLabel('Find').fill('no such thing')
  await page.getByText('None of the 2 newest campaigns').waitFor()
  expect(page.url()).toContain('find=no')
  await page.getByLabel('Find').fill('ON-OFF')
  await page.getByRole('button', { name: '3 runs' }).click()
  await page
    .getByText(/lttcp-on-off · vip-lot · 128 KiB/)
    .first()
    .waitFor()
  for (const box of await page.getByRole('checkbox', { name: /^Compare browser/ }).all()) await box.check()
  await page.getByRole('button', { name: 'Compare selected (2)' }).click()
  // Both have a run without losses; the others are of one campaign alone.
  await page.getByRole('heading', { name: /loss 0: B .* against A/ }).waitFor()
  const row = page.getByRole('row', { name: /^TCP CUBIC/ })
  expect(await row.getByRole('img').getAttribute('aria-label')).toMatch(
    /KB\/s, 95 % interval .* to .*: (not )?decided$/,
  )
  expect(await row.innerText()).toMatch(/n 3/)
  await page.getByText('4 treatments have no counterpart').waitFor()
  await clean(page)
  await shotBoth(page, 'results-differences')
  for (const width of [1366, 1024, 768]) {
    await page.setViewportSize({ width, height: 768 })
    await expect
      .poll(() => page.locator('.table-scroll').evaluateAll((all) => all.every((e) => e.scrollWidth <= e.clientWidth)))
      .toBe(true)
  }
  await page.setViewportSize(sizes.laptop)
  const file = await saved(page, async () => {
    await page.getByRole('button', { name: 'Download data' }).click()
    await page.getByRole('button', { name: 'CSV, a row a difference of campaigns' }).click()
  })
  const [head, ...lines] = file.content.toString().trim().split('\r\n')
  expect(head).toContain('difference_kb_per_s')
  expect(lines).toHaveLength(2)
  await page.getByRole('link', { name: 'Figure', exact: true }).click()
  await drawn(page)
  expect(new URL(page.url()).searchParams.getAll('ids')).toHaveLength(2)
  await shotBoth(page, 'results-compared')
  await page.getByRole('button', { name: 'Remove browser' }).first().click()
  await expect.poll(() => new URL(page.url()).searchParams.getAll('ids').length).toBe(1)
})

// The export of a campaign under another identity is what another orchestrator gives.
test('results of another orchestrator are imported, compared and removed', async () => {
  const theirs = s.linktrial('results', ids[0]!, '--format', 'json').replaceAll(ids[0]!, 'their4xq')
  const write = (name: string, text: string) => {
    const file = join(folder, name)
    writeFileSync(file, text)
    return file
  }
  const page = await s.open('/results')
  const dialog = page.getByRole('dialog')
  const send = async (file: string) => {
    await dialog.getByLabel('File').setInputFiles(file)
    await dialog.getByRole('button', { name: 'Import' }).click()
  }
  await page.getByRole('button', { name: 'Import …' }).click()
  await dialog.getByLabel('Origin').fill('company B')
  await send(write('table.csv', 'run\r\n'))
  await dialog.getByText('table.csv is no JSON export').waitFor()
  await send(write('edited.json', theirs.replace('"average_kb_per_s": ', '"average_kb_per_s": 9')))
  await dialog.getByText(/tables\[0\] \(their4xq-1\).*but the attempts in the file give/).waitFor()
  await clean(page)
  await shotBoth(page, 'results-import-refused')
  await send(write('results.json', theirs))
  await page.getByText('Campaign their4xq is imported').waitFor()
  const row = page.getByRole('row', { name: /their4xq/ })
  expect(await row.innerText()).toMatch(/imported\s+from results\.json of company B/)
  await page.getByRole('button', { name: 'Import …' }).click()
  await send(write('results.json', theirs))
  await dialog.getByText('is here already').waitFor()
  await dialog.getByRole('button', { name: 'Cancel' }).click()
  await clean(page)
  await shotBoth(page, 'results-imported-list')
  await shotNarrow(page, 'results-imported-list')

  // Beside one's own, in the same figure and table, and marked there.
  await row.getByRole('checkbox').check()
  await page.getByRole('checkbox', { name: `Compare browser, ${ids[1]}` }).check()
  await page.getByRole('button', { name: 'Compare selected (2)' }).click()
  await page.getByRole('heading', { name: /against A \(browser, imported\)|B \(browser, imported\) against/ }).waitFor()
  await page.getByText(/^Campaign their4xq was imported from results\.json of company B/).waitFor()
  await shotBoth(page, 'results-imported-differences')
  await page.getByRole('link', { name: 'Figure', exact: true }).click()
  await drawn(page)
  await clean(page)
  await shotBoth(page, 'results-imported-figure')
  await shotNarrow(page, 'results-imported-figure')
  await page.getByRole('button', { name: 'Download data' }).click()
  await page.getByText('Of imported runs there are no samples').waitFor()
  await page.getByRole('button', { name: 'CSV, a row a treatment' }).waitFor()
  expect(await page.getByRole('button', { name: /a row a sample/ }).count()).toBe(0)

  // What the file does not hold says so.
  const sequence = await s.open('/results?ids=their4xq&tab=sequence')
  await sequence.getByText('This run was imported').waitFor()
  await clean(sequence)
  const trials = await s.open('/results?ids=their4xq&tab=trials')
  await trials.getByText('Of imported attempts there is no more than this').waitFor()
  expect(await trials.getByRole('link', { name: /^\d+$/ }).count()).toBe(0)
  const attempt = await s.open('/results/attempt/their4xq-1/1')
  await attempt.getByText(/campaign their4xq was imported: the file that it came from/i).waitFor()

  const list = await s.open('/results')
  await list.getByRole('button', { name: 'Remove the imported campaign their4xq' }).click()
  await list.getByRole('dialog').getByRole('button', { name: 'Remove' }).click()
  await list.getByText('The imported campaign their4xq is removed.').waitFor()
  await list.getByRole('row', { name: /their4xq/ }).waitFor({ state: 'detached' })
})

test("the paper's figure shows every treatment, and the view is in the URL", async () => {
  const page = await s.open(`/results?ids=${ids[0]}`)
  await drawn(page)
  const figure = page.getByRole('img', { name: /^Throughput, VIP Lot/ }).first()
  await figure.waitFor()
  expect(await figure.getAttribute('aria-label')).toMatch(
    /TCP CUBIC: mean [\d.]+ KB\/s, n 3 of 3; TCP BBR: mean [\d.]+ KB\/s, n 3 of 3; SCPS-TP: not run/,
  )
  expect(await page.getByRole('img', { name: /no valid trial of 3/ }).count()).toBe(1)
  await page.getByText('SCPS-TP was not run: it is not built yet.').first().waitFor()
  await clean(page)
  await shotBoth(page, 'results-figure')

  await page.getByLabel('Same scale everywhere').check()
  await page.getByLabel('Ideal').check()
  await page.getByLabel('Coded bound').check()
  await page.getByRole('button', { name: 'TCP BBR' }).click()
  await page.locator('label.tool', { hasText: /^loss/ }).locator('select').selectOption('0')
  const url = new URL(page.url())
  expect(url.searchParams.get('lock')).toBe('1')
  expect(url.searchParams.get('ideal')).toBe('1')
  expect(url.searchParams.get('coded')).toBe('1')
  expect(url.searchParams.get('hide')).toBe('tcp-bbr')
  const again = await s.open(url.pathname + url.search)
  await drawn(again)
  expect(await again.getByRole('button', { name: 'TCP BBR' }).getAttribute('aria-pressed')).toBe('false')
  expect(await again.locator('[data-drawn]').count()).toBe(1)
  await shot(again, 'results-figure-filtered-laptop')
  // A file of what is shown has neither the other runs nor the hidden treatment.
  await again.getByRole('button', { name: 'Download data' }).click()
  await again.getByText('Without TCP BBR; statistics are of all treatments.').waitFor()
  const file = await saved(again, () => again.getByRole('button', { name: 'CSV, a row an attempt' }).click())
  expect(file.name).toBe('browser-lttcp-on-off-vip-lot-without-tcp-bbr-trials.csv')
  const rows = file.content.toString().trim().split('\r\n').slice(1)
  expect(rows.length).toBeGreaterThanOrEqual(3)
  expect(rows.every((r) => r.includes('tcp-cubic') && !r.includes('tcp-bbr'))).toBe(true)
  // So does the report, which is no file of data and has a button of its own.
  await again.getByRole('button', { name: 'CSV, a row an attempt' }).waitFor({ state: 'hidden' })
  await again.getByRole('button', { name: 'Report', exact: true }).click()
  const report = await saved(again, () => again.getByRole('button', { name: /HTML/ }).click())
  expect(report.name).toBe('browser-lttcp-on-off-vip-lot-without-tcp-bbr-report.html')
  const text = report.content.toString()
  expect(text).toMatch(/^<!doctype html>/i)
  expect(text).toContain(ids[0]!)
  // The evidence is of the whole campaign.
  await again.getByRole('button', { name: 'Evidence', exact: true }).click()
  const bag = await saved(again, () => again.getByRole('button', { name: 'Pack the evidence' }).click())
  expect(bag.name).toBe(`linktrial-${ids[0]}-evidence.zip`)
  expect(bag.content.subarray(0, 2).toString()).toBe('PK')
  await again.getByText('✓ Packed and signed').waitFor()
  await shot(again, 'results-evidence-laptop')
  await clean(again)
  await again.getByRole('button', { name: 'Done' }).click()
  // The director's own words are in the next report.
  await again.getByRole('button', { name: 'Own words …' }).click()
  await again.getByLabel('Title', { exact: true }).fill('Field trial of the hill')
  await again.getByLabel('Summary', { exact: true }).fill('It <b>rained</b>.')
  await shot(again, 'results-words-laptop')
  await clean(again)
  await again.getByRole('button', { name: 'Save', exact: true }).click()
  await again.getByRole('dialog').waitFor({ state: 'hidden' })
  await again.getByRole('button', { name: 'Report', exact: true }).click()
  const worded = await saved(again, () => again.getByRole('button', { name: /HTML/ }).click())
  expect(worded.content.toString()).toContain('Field trial of the hill')
  expect(worded.content.toString()).toContain('It &lt;b&gt;rained&lt;/b&gt;.')
  for (const theme of ['dark', 'sun']) {
    const p = await s.open(`/results?ids=${ids[0]}`, { theme })
    await drawn(p)
    await clean(p)
    await shot(p, `results-figure-${theme}`)
  }
})

test('what a comparison comes to stands above every view, in the words of the exports', async () => {
  const exported = JSON.parse(s.linktrial('results', ids[0]!, '--format', 'json')) as {
    tables: { conclusion?: string; notes?: string[] }[]
  }
  const said = exported.tables.flatMap((t) => [...(t.conclusion ? [t.conclusion] : []), ...(t.notes ?? [])])
  expect(said.length).toBeGreaterThan(0)
  for (const tab of ['', '&tab=table', '&tab=trials']) {
    const page = await s.open(`/results?ids=${ids[0]}${tab}`)
    const section = page.getByRole('region', { name: 'Conclusions' })
    await section.waitFor()
    for (const text of said) expect(await section.innerText()).toContain(text)
    if (!tab) continue
    await clean(page)
    await page.setViewportSize({ width: 390, height: 844 })
    await shot(page, `results-conclusions-phone${tab.replace('&tab=', '-')}`)
  }
})

test('a point of the figure leads to its attempt', async () => {
  const page = await s.open(`/results?ids=${ids[0]}&hide=tcp-bbr&hide=scps-tp&published=0`)
  await drawn(page)
  const canvas = page.locator('canvas').first()
  const box = (await canvas.boundingBox())!
  // The middle iteration of the only slot is in its middle; how high its point is, we look for.
  for (let y = 30; y < box.height - 60 && page.url().includes('/results?'); y += 3)
    await page.mouse.click(box.x + 58 + (box.width - 72) / 2, box.y + y)
  await page.waitForURL(/\/results\/attempt\/[^/]+\/2\?attempt=1/)
})

test('the table is the one of the command line', async () => {
  const page = await s.open(`/results?ids=${ids[0]}&tab=table`)
  await page.getByRole('columnheader', { name: 'Average' }).waitFor()
  const told = JSON.parse(s.linktrial('results', ids[0]!, '--format', 'json')) as {
    tables: { rows: { average_kb_per_s: number | null }[] }[]
  }
  const theirs = told.tables
    .flatMap((t) => t.rows)
    .flatMap((r) => (r.average_kb_per_s === null ? [] : [r.average_kb_per_s.toFixed(2)]))
  const ours = (await page.locator('td .strong').allTextContents()).filter((x) => x !== '–')
  expect(ours.sort()).toEqual(theirs.sort())
  expect(ours.length).toBe(4)
  await page.getByText('it is not built yet').first().waitFor()
  await page
    .getByText(/\d× transfer-timeout/)
    .first()
    .waitFor()
  await clean(page)
  await shotBoth(page, 'results-table')
  await page.getByRole('button', { name: 'Average' }).click()
  await expect
    .poll(() => page.getByRole('columnheader', { name: 'Average' }).getAttribute('aria-sort'))
    .toBe('descending')
  const sorted = (await page.locator('td .strong').allTextContents()).filter((x) => x !== '–').map(Number)
  expect(sorted).toEqual([...sorted].sort((a, b) => b - a))
})

test('times to delivery are those of the command line, over failed trials too', async () => {
  const page = await s.open(`/results?ids=${ids[0]}&tab=table`)
  const section = page.getByRole('region', { name: 'Time to delivery' })
  await section.waitFor()
  const told = JSON.parse(s.linktrial('results', ids[0]!, '--format', 'json')) as {
    tables: { rows: { label: string; delivery?: { share: number; mean_s: number; horizon_s: number } }[] }[]
  }
  const theirs = told.tables
    .flatMap((t) => t.rows)
    .flatMap((r) => (r.delivery ? [{ label: r.label, ...r.delivery }] : []))
  expect(theirs.length).toBeGreaterThan(3)
  expect(theirs.some((d) => d.share < 1 && d.mean_s > 0)).toBe(true)
  const rows = section.locator('tbody tr')
  expect(await rows.count()).toBe(theirs.length)
  for (const [i, d] of theirs.entries()) {
    expect(await rows.nth(i).getByRole('rowheader').innerText()).toContain(d.label)
    const mean = await rows.nth(i).getByRole('cell').nth(1).innerText()
    expect(Math.abs(Number(mean.split('\n')[0]) - d.mean_s)).toBeLessThan(Math.max(0.006, d.mean_s / 1000))
  }
  await section.scrollIntoViewIfNeeded()
  await shotBoth(page, 'results-delivery')
})

/** The numbers at the axes of a figure's file: texts that are a number and its unit. */
const ticks = (svg: string) =>
  [...svg.matchAll(/<text[^>]*>([−-]?[\d.]+)(?:k|M)?(?: ?(?:s|%|ms))?<\/text>/g)].map((m) => m[1]!)
/** Those that no person would choose, such as 98, 195, 293: no small multiple of a round step. */
const crooked = (svg: string) =>
  ticks(svg).filter((t) => {
    const x = Math.abs(Number(t.replace('−', '-')))
    return (
      x > 0 &&
      !Array.from({ length: 12 }, (_, k) => x / (k + 1)).some((step) => {
        const lead = Number((step / 10 ** Math.floor(Math.log10(step) + 1e-9)).toPrecision(6))
        return [1, 2, 2.5, 3, 4, 5].includes(lead)
      })
    )
  })

test.each([
  ['cumulative', /^Throughput, /],
  ['cdf', /^Distribution of throughput/],
  ['delivery', /^Share delivered over time/],
  ['iterations', /^Throughput over 3 iterations/],
  ['sweep', /over loss/],
  ['sequence', /^Time–sequence diagram of iteration 1/],
])('the tab %s is drawn and can be heard', async (tab, words) => {
  const page = await s.open(`/results?ids=${ids[0]}&tab=${tab}`)
  await page.getByRole('img', { name: words }).first().waitFor()
  await drawn(page)
  await clean(page)
  await shotBoth(page, `results-${tab}`)
  // Its file says campaign, place and radio, and has steps that people choose.
  const svg = await saved(page, () =>
    page
      .getByRole('button', { name: /^SVG of / })
      .first()
      .click(),
  )
  expect(svg.name).toMatch(/^browser-.*vip-lot-lt-tcp-bottleneck-.*\.svg$/)
  expect(ticks(svg.content.toString()).length).toBeGreaterThan(4)
  expect(crooked(svg.content.toString())).toEqual([])
})

test('trials without a valid value are listed with the reason', async () => {
  const page = await s.open(`/results?ids=${ids[0]}&tab=trials`)
  await page.getByText(/^\d+ attempts/).waitFor()
  await shotBoth(page, 'results-trials')
  await page.locator('label.tool', { hasText: /^Show/ }).locator('select').selectOption('other')
  // Six trials of two attempts; on a busy machine others may have needed a second one.
  await page.getByText(/^1\d attempts/).waitFor()
  expect(await page.locator('tbody .mark.ok').count()).toBe(0)
  await clean(page)
  await page
    .getByRole('row', { name: /transfer-timeout/ })
    .first()
    .getByRole('link')
    .click()
  await page
    .getByText(/transfer-timeout/)
    .first()
    .waitFor()
  await drawn(page) // what was sent until it was stopped
  await page.getByText('the transfer did not get that far').waitFor()
  await clean(page)
  await shotBoth(page, 'attempt-failed')
})

test('an attempt is looked at closely', async () => {
  const page = await s.open(
    `/results?ids=${ids[0]}&tab=trials&verdict=valid&setting=${encodeURIComponent('loss=0.01')}`,
  )
  await page
    .getByRole('row', { name: /TCP CUBIC/ })
    .first()
    .getByRole('link')
    .click()
  await drawn(page)
  const figure = page.getByRole('img', { name: /^Time series of the attempt/ })
  const words = (await figure.getAttribute('aria-label'))!
  for (const panel of [
    'Throughput in KB/s',
    'Data in KB',
    'Window in KB',
    'Round trip in s',
    'Channel: packets lost in %',
  ])
    expect(words).toContain(panel)
  await page.getByText('what arrived is what was sent').waitFor()
  await clean(page)
  await shotBoth(page, 'attempt')
  const dark = await s.open(new URL(page.url()).pathname, { theme: 'dark' })
  await drawn(dark)
  await shot(dark, 'attempt-dark')

  // By keyboard, then by hand; the server is asked for the part that is shown.
  const asked: string[] = []
  page.on('request', (r) => r.url().endsWith('/Series') && asked.push(r.url()))
  await page.getByRole('button', { name: 'Closer' }).focus()
  await page.keyboard.press('Enter')
  await expect.poll(() => new URL(page.url()).searchParams.get('to')).toBeTruthy()
  await expect.poll(() => asked.length).toBe(1)
  const before = Number(new URL(page.url()).searchParams.get('to'))
  await figure.scrollIntoViewIfNeeded()
  const box = (await figure.boundingBox())!
  await page.mouse.move(box.x + 100, box.y + 70)
  await page.mouse.down()
  await page.mouse.move(box.x + box.width / 2, box.y + 80, { steps: 4 })
  await page.mouse.up()
  await expect.poll(() => Number(new URL(page.url()).searchParams.get('to'))).toBeLessThan(before)
  await shot(page, 'attempt-zoomed-laptop')
  await page.getByRole('button', { name: 'Whole' }).click()
  await expect.poll(() => new URL(page.url()).searchParams.has('to')).toBe(false)

  await page.getByRole('navigation', { name: 'Trials' }).getByRole('link', { name: 'TCP BBR' }).click()
  await page.getByRole('heading', { name: /TCP BBR, iteration 1/ }).waitFor()
  await page
    .getByRole('link', { name: 'Next trial of the run' })
    .or(page.getByTitle('Next trial of the run'))
    .first()
    .click()
  await page.getByRole('heading', { name: /TCP CUBIC, iteration 2/ }).waitFor()
})

test('figures and data are saved', async () => {
  const page = await s.open(`/results?ids=${ids[0]}`, { theme: 'dark' })
  await drawn(page)
  const svg = await saved(page, () => page.getByRole('button', { name: 'SVG of the whole figure' }).click())
  expect(svg.name).toMatch(/^browser-throughput-.*vip-lot.*\.svg$/)
  const text = svg.content.toString()
  for (const words of [
    `campaign ${ids[0]}`,
    'n 12 valid of 18 trials',
    'emulated, real time',
    'fill="#ffffff"',
    'TCP CUBIC',
  ])
    expect(text).toContain(words)
  const png = await saved(page, () => page.getByRole('button', { name: 'PNG of the whole figure' }).click())
  expect(png.content.subarray(1, 4).toString()).toBe('PNG')
  expect(png.content.length).toBeGreaterThan(20_000)
  for (const [button, ending, inside] of [
    ['CSV, a row a treatment', '.csv', 'tcp-cubic'],
    ['CSV, a row an attempt', '.csv', 'connect'],
    ['CSV, a row a sample', '.csv', 'cwnd_bytes'],
    ['JSON', '.json', '"campaign"'],
    ['LaTeX table', '.tex', '\\begin'],
    ['Markdown', '.md', '|'],
  ] as const) {
    await page.getByRole('button', { name: 'Download data' }).click()
    const file = await saved(page, () =>
      page
        .locator('.menu .list')
        .getByRole('button', { name: new RegExp(`^${button}(\\s|$)`) })
        .click(),
    )
    expect(file.name).toMatch(/^browser-lttcp-on-off-vip-lot-(results|trials|samples)\./)
    expect(file.name.endsWith(ending)).toBe(true)
    expect(file.content.toString()).toContain(inside)
  }
  // On a phone the list stays within the page.
  await page.setViewportSize({ width: 390, height: 844 })
  await page.getByRole('button', { name: 'Download data' }).click()
  const list = await page.locator('.menu .list').boundingBox()
  expect(list!.x).toBeGreaterThanOrEqual(0)
  expect(list!.x + list!.width).toBeLessThanOrEqual(390)
})

test('what cannot be had says so in the words of the server', async () => {
  const page = await s.open('/results?ids=nosuchcampaign')
  await page.getByRole('alert').getByText('nosuchcampaign').waitFor()
  await page.getByRole('button', { name: 'Try again' }).waitFor()
  await page.goto(`${s.url}/results/attempt/nosuchrun/0`)
  await page.getByRole('alert').getByText('nosuchrun').waitFor()
  await clean(page)
})

test('the page is drawn soon, of few scripts', async () => {
  const page = await s.open('/')
  await page.addInitScript(() => {
    new MutationObserver((_, o) => {
      if (!document.querySelector('[data-drawn]')) return
      o.disconnect()
      requestAnimationFrame(() => ((window as unknown as { drawnAt: number }).drawnAt = performance.now()))
    }).observe(document, { subtree: true, attributes: true, attributeFilter: ['data-drawn'] })
  })
  await page.setViewportSize(sizes.laptop)
  await page.goto(`${s.url}/results?ids=${ids[0]}`)
  await page.waitForFunction(() => (window as unknown as { drawnAt?: number }).drawnAt)
  const at = await page.evaluate(() => ({
    drawn: (window as unknown as { drawnAt: number }).drawnAt,
    paint: performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? -1,
    nodes: document.querySelectorAll('*').length,
  }))
  const bytes = await scriptBytes(page)
  console.log(
    `results: ${(bytes / 1024).toFixed(0)} KB of compressed scripts, first contentful paint after ${at.paint.toFixed(0)} ms, figure drawn after ${at.drawn.toFixed(0)} ms, ${at.nodes} elements`,
  )
  expect(bytes).toBeLessThan(500 * 1024)
  expect(at.nodes).toBeLessThan(2000)
})

test('no page has thrown or logged an error', () => expect(troubles).toEqual([]))
