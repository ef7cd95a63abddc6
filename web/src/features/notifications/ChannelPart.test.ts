import { create } from '@bufbuild/protobuf'
import { timestampFromDate } from '@bufbuild/protobuf/wkt'
import { Code, ConnectError } from '@connectrpc/connect'
import { VueQueryPlugin } from '@tanstack/vue-query'
import { flushPromises, mount } from '@vue/test-utils'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { ChannelSchema, ListChannelsResponseSchema } from '@/gen/linktrial/v1/notification_pb'
import ChannelPart from './ChannelPart.vue'

const calls = vi.hoisted(() => ({
  listChannels: vi.fn(),
  saveChannel: vi.fn(),
  removeChannel: vi.fn(),
  testChannel: vi.fn(),
  denied: '',
}))
vi.mock('@/lib/api', () => ({ notifications: calls, explain: (e: Error) => e.message }))
vi.mock('@/composables/contact', async () => ({ outage: (await import('vue')).ref() }))
vi.mock('@/features/access/session', () => ({ mayNot: () => calls.denied }))
HTMLDialogElement.prototype.showModal = function () {
  this.open = true
}
HTMLDialogElement.prototype.close = function () {
  this.open = false
}

const hook = create(ChannelSchema, {
  name: 'chat',
  version: 2,
  hasSecret: true,
  settings: { case: 'webhook', value: { url: 'https://chat.example/hooks/1' } },
  kinds: ['run-failed'],
  state: {
    delivered: 4,
    deliveredAt: timestampFromDate(new Date('2026-05-01T08:30:00Z')),
    waiting: 3,
    givenUp: 1,
    error: 'the receiver answered 500',
    failedAt: timestampFromDate(new Date('2026-05-01T09:30:00Z')),
    nextTry: timestampFromDate(new Date('2026-05-01T09:31:00Z')),
  },
})
const response = (...channels: (typeof hook)[]) =>
  create(ListChannelsResponseSchema, {
    channels,
    kinds: [
      { key: 'run-ended', title: 'A run has ended', about: 'When it completes.' },
      { key: 'run-failed', title: 'A run was stopped', about: 'By a fault.' },
    ],
  })

let page: ReturnType<typeof mount>
async function opened(...channels: (typeof hook)[]) {
  calls.listChannels.mockResolvedValue(response(...channels))
  page = mount(ChannelPart, { global: { plugins: [VueQueryPlugin] }, attachTo: document.body })
  await flushPromises()
  return page
}
const press = async (text: string) => {
  const all = page.findAll('button').filter((b) => b.text().startsWith(text))
  await all.at(-1)!.trigger('click')
  await flushPromises()
}
const field = (label: string) => page.findAll('div.field').find((f) => f.find('.label').text() === label)!
const send = async () => {
  await page.get('form').trigger('submit')
  await flushPromises()
}

beforeEach(() => {
  vi.resetAllMocks()
  calls.denied = ''
})
afterEach(() => page.unmount())

it('shows how deliveries go, with the last error and what comes next', async () => {
  await opened(hook)
  const row = page.get('tbody tr').text().replace(/\s+/g, ' ')
  for (const text of [
    ...['chat', 'webhook', 'https://chat.example/hooks/1', 'A run was stopped', 'last delivery failed'],
    ...['last delivered 2026-05-01 08:30:00 UTC', '3 waiting, next try 2026-05-01 09:31:00 UTC', '1 given up'],
    '2026-05-01 09:30:00 UTC: The receiver answered 500.',
  ])
    expect(row).toContain(text)
})

it('shows the error of a test where it was pressed, and that one arrived', async () => {
  await opened(hook)
  calls.testChannel.mockResolvedValueOnce({ error: 'connection refused' })
  await press('Test')
  expect(page.get('tbody [role=status]').text()).toContain('The test failed: Connection refused.')
  calls.testChannel.mockResolvedValueOnce({ error: '' })
  await press('Test')
  expect(page.get('tbody [role=status]').text()).toContain('The test was delivered.')
  expect(calls.testChannel).toHaveBeenLastCalledWith({ name: 'chat' })
})

it('adds a webhook, and says what is wrong beside its field first', async () => {
  await opened()
  expect(page.text()).toContain('No notification channel yet')
  await press('Add webhook')
  await send()
  expect(calls.saveChannel).not.toHaveBeenCalled()
  expect(field('URL').text()).toContain('Give the address')
  expect(document.activeElement).toBe(field('Name').get('input').element)
  await field('Name').get('input').setValue('ops')
  await field('URL').get('input').setValue('https://a.example/')
  await send()
  expect(calls.saveChannel.mock.calls[0]![0]).toMatchObject({ channel: { name: 'ops', version: 0 }, secret: '' })
  expect(page.find('form').exists()).toBe(false)
})

it('asks for a kind where some are to be sent and none is chosen', async () => {
  await opened(hook)
  await press('Change …')
  for (const box of page.findAll('fieldset input[type=checkbox]')) await box.setValue(false)
  await send()
  expect(page.get('fieldset').text()).toContain('Choose at least one kind')
  expect(document.activeElement).toBe(page.findAll('fieldset input[type=radio]')[1]!.element)
  expect(calls.saveChannel).not.toHaveBeenCalled()
  await page.findAll('fieldset input[type=checkbox]')[0]!.setValue(true)
  await send()
  expect(calls.saveChannel.mock.calls[0]![0]).toMatchObject({ channel: { kinds: ['run-ended'] } })
})

it('shows a refusal of the orchestrator beside its field, until something is changed', async () => {
  await opened(hook)
  calls.saveChannel.mockRejectedValueOnce(
    new ConnectError("the webhook's URL is not complete, expected http or https with a host", Code.InvalidArgument),
  )
  await press('Change …')
  await send()
  expect(field('URL').text()).toContain("The webhook's URL is not complete")
  expect(page.get('form [role=alert]').text()).toContain('marked')
  await field('URL').get('input').setValue('https://b.example/')
  expect(field('URL').text()).not.toContain('not complete')
  expect(field('Secret').text()).toContain('sends elsewhere')
})

it('never fills in a secret, and keeps, replaces or removes it', async () => {
  await opened(hook)
  await press('Change …')
  expect(page.find('input[type=password]').exists()).toBe(false)
  await send()
  expect(calls.saveChannel.mock.calls[0]![0]).toMatchObject({
    channel: { version: 2 },
    secret: '',
    removeSecret: false,
  })
  await press('Change …')
  await field('Secret').get('select').setValue('set')
  expect((page.get('input[type=password]').element as HTMLInputElement).value).toBe('')
  await page.get('input[type=password]').setValue('new')
  await send()
  expect(calls.saveChannel.mock.calls[1]![0]).toMatchObject({ secret: 'new', removeSecret: false })
  await press('Change …')
  await field('Secret').get('select').setValue('remove')
  await send()
  expect(calls.saveChannel.mock.calls[2]![0]).toMatchObject({ secret: '', removeSecret: true })
})

it('says that somebody else has changed it, and loads that', async () => {
  await opened(hook)
  await press('Change …')
  calls.saveChannel.mockRejectedValueOnce(new ConnectError('was changed in between', Code.FailedPrecondition))
  await send()
  expect(page.text()).toContain('somebody has changed or removed')
  calls.listChannels.mockResolvedValue(
    response(
      create(ChannelSchema, {
        name: 'chat',
        version: 3,
        settings: { case: 'webhook', value: { url: 'https://theirs.example/' } },
      }),
    ),
  )
  await press('Load the saved settings')
  expect((field('URL').get('input').element as HTMLInputElement).value).toBe('https://theirs.example/')
  expect(page.find('form [role=alert]').exists()).toBe(false)
  await send()
  expect(calls.saveChannel.mock.calls[1]![0]).toMatchObject({ channel: { version: 3 } })
})

it('removes one after a question', async () => {
  await opened(hook)
  await press('Remove …')
  expect(calls.removeChannel).not.toHaveBeenCalled()
  await send()
  expect(calls.removeChannel).toHaveBeenCalledWith({ name: 'chat' })
})

it('tells others who can, and asks nothing', async () => {
  calls.denied = 'otto is a viewer: this takes an admin'
  await opened(hook)
  expect(page.text()).toContain('otto is a viewer: this takes an admin.')
  expect(page.find('button').exists()).toBe(false)
  expect(calls.listChannels).not.toHaveBeenCalled()
})
