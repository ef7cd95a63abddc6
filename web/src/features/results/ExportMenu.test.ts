import { create } from '@bufbuild/protobuf'
import { flushPromises, mount } from '@vue/test-utils'
import { beforeEach, expect, it, vi } from 'vitest'
import { FormatSchema } from '@/gen/linktrial/v1/result_pb'
import ExportMenu from './ExportMenu.vue'

const calls = vi.hoisted(() => ({ listFormats: vi.fn(), results: vi.fn(), saveFile: vi.fn(), error: vi.fn() }))
vi.mock('@/lib/api', () => ({ results: calls, operator: calls, explain: (e: Error) => e.message }))
vi.mock('@/lib/save', () => ({ saveFile: calls.saveFile, saveFrom: () => undefined }))
vi.mock('@/composables/toasts', () => ({ toast: { error: calls.error } }))

const choice = {
  key: 'c1',
  label: 'Spring, whole campaign',
  ids: ['c1'],
  words: ['Spring'],
  imported: true,
  leaveOut: [{ name: 'udt', label: 'UDT' }],
}
const props = {
  label: 'Report',
  choices: [choice, { ...choice, key: 'c2', ids: ['c2'] }],
  reference: 'cubic',
  hidden: 1,
}

async function opened(documents: boolean) {
  const menu = mount(ExportMenu, { props: { ...props, documents } })
  await menu.get('button').trigger('click')
  await flushPromises()
  return menu
}
const offered = (menu: Awaited<ReturnType<typeof opened>>) =>
  menu
    .findAll('.list button')
    .map((b) => b.text())
    .filter((t) => t)

beforeEach(() => {
  vi.resetAllMocks()
  calls.listFormats.mockResolvedValue({
    formats: [
      create(FormatSchema, { name: 'csv', title: 'CSV' }),
      create(FormatSchema, { name: 'svg', title: 'SVG', drawing: true }),
      create(FormatSchema, { name: 'report', title: 'Report (HTML)', document: true }),
      create(FormatSchema, { name: 'report-pdf', title: 'Report (PDF)', document: true }),
    ],
  })
})

it('offers reports, or the files of data without them', async () => {
  expect(offered(await opened(true))).toEqual(['Report (HTML)', 'Report (PDF)'])
  const data = await opened(false)
  expect(offered(data)).toEqual(['CSV'])
  expect(data.text()).toContain('Of imported runs there are no samples')
})

it('saves the report of what is chosen, under the name of what it is of', async () => {
  calls.results.mockReturnValue([
    { done: 0.5, fileName: '', content: new Uint8Array() },
    { fileName: 'report.html', mediaType: 'text/html', content: new Uint8Array([60]) },
  ])
  const menu = await opened(true)
  await menu.get('select').setValue('c2')
  await flushPromises()
  await menu.findAll('.list button')[0]!.trigger('click')
  await flushPromises()
  expect(calls.results.mock.calls[0]![0]).toMatchObject({
    runId: 'c2',
    format: 'report',
    reference: 'cubic',
    leaveOut: ['udt'],
  })
  expect(calls.saveFile.mock.calls[0]![0]).toBe('spring-report.html')
  expect(menu.find('.list').exists()).toBe(false)
})

it('says what the orchestrator says where a report cannot be made', async () => {
  calls.results.mockImplementation(() => {
    throw new Error('PDF needs Typst')
  })
  const menu = await opened(true)
  await menu.findAll('.list button')[1]!.trigger('click')
  await flushPromises()
  expect(calls.error).toHaveBeenCalledWith('The file could not be made: PDF needs Typst')
  expect(calls.saveFile).not.toHaveBeenCalled()
  expect(offered(menu)).toHaveLength(2)
})
