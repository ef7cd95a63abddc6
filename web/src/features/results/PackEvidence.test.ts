import { create } from '@bufbuild/protobuf'
import { flushPromises, mount } from '@vue/test-utils'
import { beforeEach, expect, it, vi } from 'vitest'
import { PackResponseSchema } from '@/gen/linktrial/v1/evidence_pb'
import PackEvidence from './PackEvidence.vue'

const calls = vi.hoisted(() => ({ pack: vi.fn(), saveFrom: vi.fn() }))
vi.mock('@/lib/api', () => ({ evidence: calls, explain: (e: Error) => e.message }))
vi.mock('@/lib/save', () => ({ saveFrom: calls.saveFrom }))

const last = create(PackResponseSchema, {
  done: 1,
  key: 'K+',
  fileName: 'linktrial-c1-evidence.zip',
  bytes: 2048n,
  files: 40,
  journals: 3,
  signedJournals: 2,
  complete: true,
  missing: ['the signature of the journal of node a: it signed nothing'],
  fingerprint: '0a1b',
  sshFingerprint: 'SHA256:abc',
})
const progress = create(PackResponseSchema, { doing: 'exporting the results', done: 0.5, secondsLeft: 12 })

async function opened(campaigns = [{ id: 'c1', name: 'Spring' }]) {
  HTMLDialogElement.prototype.showModal ??= () => undefined
  HTMLDialogElement.prototype.close ??= () => undefined
  const page = mount(PackEvidence, { props: { campaigns } })
  await page.get('button').trigger('click')
  return page
}

beforeEach(() => vi.resetAllMocks())

it('packs the campaign that is chosen, saves the file, and shows what it lacks and whose key signed it', async () => {
  calls.pack.mockReturnValue([progress, last])
  const page = await opened([
    { id: 'c1', name: 'Spring' },
    { id: 'c2', name: 'Autumn' },
  ])
  await page.get('select').setValue('c2')
  await page.get('form').trigger('submit')
  await flushPromises()
  expect(calls.pack.mock.calls[0]![0]).toEqual({ campaignId: 'c2' })
  expect(calls.saveFrom).toHaveBeenCalledWith('/download/evidence?key=K%2B', 'linktrial-c1-evidence.zip')
  for (const text of ['Packed and signed', '2 of 3 journals signed', 'it signed nothing', '0a1b', 'SHA256:abc'])
    expect(page.text()).toContain(text)
})

it('shows how far it is, and stops when it is told to', async () => {
  let signal: AbortSignal | undefined
  calls.pack.mockImplementation(async function* (_: unknown, options: { signal: AbortSignal }) {
    signal = options.signal
    yield progress
    await new Promise((_, reject) => signal!.addEventListener('abort', () => reject(new Error('aborted'))))
  })
  const page = await opened()
  expect(page.find('select').exists()).toBe(false)
  await page.get('form').trigger('submit')
  await flushPromises()
  expect(page.text()).toContain('exporting the results: 50 %, about 12 s left')
  await page
    .findAll('button')
    .find((b) => b.text() === 'Stop')!
    .trigger('click')
  await flushPromises()
  expect(signal!.aborted).toBe(true)
  expect(calls.saveFrom).not.toHaveBeenCalled()
  expect(page.text()).not.toContain('aborted')
})

it('says what the orchestrator says, and that an answer has ended early', async () => {
  calls.pack.mockImplementation(() => {
    throw new Error('evidence is being packed now')
  })
  const page = await opened()
  await page.get('form').trigger('submit')
  await flushPromises()
  expect(page.text()).toContain('evidence is being packed now')
  calls.pack.mockReturnValue([progress])
  await page.get('form').trigger('submit')
  await flushPromises()
  expect(page.text()).toContain('The answer ended before the evidence was packed')
})

it('says that a run was under way', async () => {
  calls.pack.mockReturnValue([{ ...last, complete: false }])
  const page = await opened()
  await page.get('form').trigger('submit')
  await flushPromises()
  expect(page.text()).toContain('Packed while a run was under way')
})

it('is not there where all was measured elsewhere', () => {
  expect(
    mount(PackEvidence, { props: { campaigns: [] } })
      .find('button.ui')
      .exists(),
  ).toBe(false)
})
