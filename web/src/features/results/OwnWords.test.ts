import { create } from '@bufbuild/protobuf'
import { timestampFromDate } from '@bufbuild/protobuf/wkt'
import { Code, ConnectError } from '@connectrpc/connect'
import { flushPromises, mount } from '@vue/test-utils'
import { beforeEach, describe, expect, it, vi } from 'vitest'
import { GetWordsResponseSchema, ReportWordsSchema } from '@/gen/linktrial/v1/report_pb'
import OwnWords from './OwnWords.vue'
import { characters, savedText, textProblem, wordsFields, wordsRequest, wordsTexts } from './ownWords'

const calls = vi.hoisted(() => ({ getWords: vi.fn(), setWords: vi.fn(), success: vi.fn() }))
vi.mock('@/lib/api', () => ({ reports: calls, explain: (e: Error) => e.message }))
vi.mock('@/composables/toasts', () => ({ toast: { success: calls.success } }))
vi.mock('@/features/access/session', () => ({ mayNot: () => '' }))
// jsdom has no dialogs.
HTMLDialogElement.prototype.showModal = function () {
  this.open = true
}
HTMLDialogElement.prototype.close = function () {
  this.open = false
}

const saved = create(ReportWordsSchema, {
  version: 3,
  title: 'A day',
  summary: 'One.\n\nTwo.',
  remarks: { results: 'Rain.' },
  by: 'ada',
  at: timestampFromDate(new Date('2026-05-01T08:30:00Z')),
})
const response = (words = create(ReportWordsSchema, saved)) =>
  create(GetWordsResponseSchema, {
    campaignId: 'c1',
    words,
    chapters: [
      { key: 'method', title: 'Method' },
      { key: 'results', title: 'Results' },
    ],
    maxLine: 10,
    maxSummary: 100,
    maxRemark: 50,
  })

async function opened(campaigns = [{ id: 'c1', name: 'Spring' }]) {
  const page = mount(OwnWords, { props: { campaigns } })
  await page.get('button').trigger('click')
  await flushPromises()
  return page
}
const fieldOf = (page: Awaited<ReturnType<typeof opened>>, label: string) =>
  page
    .findAll('label.field')
    .find((l) => l.get('.label').text() === label)!
    .get<HTMLInputElement>('input, textarea')
async function send(page: Awaited<ReturnType<typeof opened>>) {
  await page.get('form').trigger('submit')
  await flushPromises()
}

beforeEach(() => {
  vi.resetAllMocks()
  calls.getWords.mockImplementation(() => Promise.resolve(response()))
  calls.setWords.mockResolvedValue({})
})

describe('the dialog', () => {
  it('has the words that there are, who saved them, and how long each is', async () => {
    const page = await opened()
    expect(fieldOf(page, 'Title').element.value).toBe('A day')
    expect(fieldOf(page, 'Summary').element.value).toBe('One.\n\nTwo.')
    expect(fieldOf(page, 'Remark on “Results”').element.value).toBe('Rain.')
    expect(fieldOf(page, 'Remark on “Method”').element.value).toBe('')
    expect(page.text()).toContain('Saved by ada 2026-05-01 08:30:00 UTC, version 3.')
    expect(page.text()).toContain('5 of 10 characters')
    expect(page.find('select').exists()).toBe(false)
  })

  it('saves them over the version that was read', async () => {
    const page = await opened()
    await fieldOf(page, 'Author').setValue('Ada')
    await fieldOf(page, 'Remark on “Results”').setValue(' ')
    await fieldOf(page, 'Remark on “Method”').setValue('m')
    await send(page)
    expect(calls.setWords).toHaveBeenCalledWith({
      campaignId: 'c1',
      version: 3,
      title: 'A day',
      author: 'Ada',
      summary: 'One.\n\nTwo.',
      remarks: { method: 'm' },
    })
    expect(page.find('form').exists()).toBe(false)
    expect(calls.success).toHaveBeenCalled()
  })

  it('sends nothing that is too long', async () => {
    const page = await opened()
    await fieldOf(page, 'Title').setValue('01234567890')
    await send(page)
    expect(calls.setWords).not.toHaveBeenCalled()
    expect(page.get('[role=alert]').text()).toBe('Title: 11 characters, expected at most 10.')
    expect(fieldOf(page, 'Title').attributes('aria-invalid')).toBe('true')
  })

  it('shows both where somebody has saved others meanwhile', async () => {
    const page = await opened()
    await fieldOf(page, 'Title').setValue('Mine')
    await fieldOf(page, 'Author').setValue('Bob')
    calls.setWords.mockRejectedValueOnce(new ConnectError('changed', Code.Aborted))
    calls.getWords.mockResolvedValueOnce(
      response(create(ReportWordsSchema, { ...saved, version: 4, title: 'Theirs', author: 'Cleo', by: 'cleo' })),
    )
    await send(page)
    expect(page.get('form [role=alert]').text()).toContain('Saved by cleo 2026-05-01 08:30:00 UTC, version 4.')
    const both = page.findAll('.theirs')
    expect(both.map((b) => b.get('p').text())).toEqual(['Saved by cleo: Theirs', 'Saved by cleo: Cleo'])
    expect(fieldOf(page, 'Title').element.value).toBe('Mine')
    await both[1]!.get('button').trigger('click')
    expect(fieldOf(page, 'Author').element.value).toBe('Cleo')
    expect(page.findAll('.theirs')).toHaveLength(1)
    await send(page)
    expect(calls.setWords.mock.lastCall![0]).toMatchObject({ version: 4, title: 'Mine', author: 'Cleo' })
  })

  it('reads those of the campaign that is chosen, and keeps an answer for another one out', async () => {
    const campaigns = [
      { id: 'c1', name: 'Spring' },
      { id: 'c2', name: 'Autumn' },
    ]
    let late: (r: unknown) => void = () => {}
    calls.getWords.mockImplementationOnce(() => new Promise((resolve) => (late = resolve)))
    const page = await opened(campaigns)
    calls.getWords.mockResolvedValueOnce(response(create(ReportWordsSchema, { version: 1, title: 'Autumn' })))
    await page.get('select').setValue('c2')
    await flushPromises()
    late(response())
    await flushPromises()
    expect(fieldOf(page, 'Title').element.value).toBe('Autumn')
    await send(page)
    expect(calls.setWords.mock.lastCall![0]).toMatchObject({ campaignId: 'c2', version: 1 })
  })

  it('says why the words cannot be read, and asks again', async () => {
    calls.getWords.mockRejectedValueOnce(new Error('no database'))
    const page = await opened()
    expect(page.get('[role=alert]').text()).toContain('The words could not be read: no database')
    await send(page)
    expect(calls.setWords).not.toHaveBeenCalled()
    await page.get('[role=alert] button').trigger('click')
    await flushPromises()
    expect(fieldOf(page, 'Title').element.value).toBe('A day')
  })

  it('is not offered for imported campaigns alone', () => {
    const page = mount(OwnWords, { props: { campaigns: [] } })
    expect(page.get('button').attributes()).toMatchObject({
      disabled: '',
      title: 'Imported campaigns keep the words that they came with.',
    })
  })
})

describe('the texts', () => {
  it('are the same after the way through a form', () => {
    expect(wordsRequest(wordsTexts(saved))).toEqual({
      title: 'A day',
      author: '',
      summary: 'One.\n\nTwo.',
      remarks: { results: 'Rain.' },
    })
    expect(wordsRequest(wordsTexts(undefined))).toEqual({ title: '', author: '', summary: '', remarks: {} })
  })

  it('are counted in characters', () => {
    expect(characters(' 👩中a ')).toBe(3)
    const title = wordsFields(response())[0]!
    expect(textProblem(title, '👩'.repeat(10))).toBe('')
    expect(textProblem(title, '👩'.repeat(11))).toBe('11 characters, expected at most 10.')
  })

  it('say who saved or removed them', () => {
    expect(savedText(undefined)).toBe('Nobody has saved words for this report yet.')
    expect(savedText(create(ReportWordsSchema, { version: 2, by: 'bob', at: saved.at }))).toBe(
      'Removed by bob 2026-05-01 08:30:00 UTC, version 2.',
    )
  })
})
