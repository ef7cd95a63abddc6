import { create, type MessageInitShape } from '@bufbuild/protobuf'
import { Code } from '@connectrpc/connect'
import { expect, test } from 'vitest'
import { ChannelSchema, MailSecurity } from '@/gen/linktrial/v1/notification_pb'
import {
  addresses,
  by,
  type ChannelForm,
  channelRequest,
  fieldOf,
  formOf,
  formProblems,
  isConflict,
  newForm,
  target,
} from './channelForm'

const mail = (more: Partial<ChannelForm> = {}): ChannelForm => ({
  ...newForm('email'),
  name: 'field',
  host: 'mail.example',
  from: 'linktrial@mail.example',
  to: 'ada@mail.example',
  ...more,
})
const hook = (more: Partial<ChannelForm> = {}): ChannelForm => ({
  ...newForm('webhook'),
  name: 'chat',
  url: 'https://chat.example/hooks/1',
  ...more,
})
const channel = (init: MessageInitShape<typeof ChannelSchema>) => create(ChannelSchema, init)

test('a form becomes a request, with or without a new secret', () => {
  expect(channelRequest(hook({ secret: 's', url: ' https://chat.example/hooks/1 ' }))).toEqual({
    channel: {
      name: 'chat',
      version: 0,
      off: false,
      kinds: [],
      settings: { case: 'webhook', value: { url: 'https://chat.example/hooks/1' } },
    },
    secret: 's',
    removeSecret: false,
  })
  const kept = channelRequest(mail({ hasSecret: true, secretChoice: 'keep', secret: 'left over', version: 4 }))
  expect([kept.secret, kept.removeSecret, kept.channel?.version]).toEqual(['', false, 4])
  const removed = channelRequest(mail({ hasSecret: true, secretChoice: 'remove', secret: 'left over' }))
  expect([removed.secret, removed.removeSecret]).toEqual(['', true])
  expect(channelRequest(mail({ allKinds: true, kinds: ['run-ended'] })).channel?.kinds).toEqual([])
  expect(channelRequest(mail({ allKinds: false, kinds: ['run-ended'] })).channel?.kinds).toEqual(['run-ended'])
})

test('what was read comes back as it was, and its secret is kept', () => {
  const settings = {
    host: 'mail.example',
    port: 465,
    security: MailSecurity.TLS,
    user: 'field',
    from: 'a@b',
    to: ['c@d', 'e@f'],
  }
  const c = channel({
    name: 'ops',
    version: 3,
    off: true,
    kinds: ['run-failed'],
    hasSecret: true,
    settings: { case: 'email', value: settings },
  })
  const form = formOf(c)
  expect(form.secret).toBe('')
  expect(channelRequest(form)).toMatchObject({
    channel: {
      name: 'ops',
      version: 3,
      off: true,
      kinds: ['run-failed'],
      settings: { case: 'email', value: settings },
    },
    secret: '',
    removeSecret: false,
  })
  expect([target(c), by(c)]).toEqual(['c@d, e@f', 'by mail.example:465'])
  const w = channel({ name: 'w', settings: { case: 'webhook', value: { url: 'https://x/' } } })
  expect([target(w), by(w), formOf(w).secretChoice]).toEqual(['https://x/', '', 'set'])
})

test('addresses are divided by lines, commas or semicolons', () => {
  expect(addresses(' a@b,\nc@d;e@f\n\n')).toEqual(['a@b', 'c@d', 'e@f'])
})

test('a right form has no problem', () => {
  expect(formProblems(hook(), [])).toEqual({})
  expect(formProblems(mail(), ['other'])).toEqual({})
  expect(formProblems(mail({ user: 'u', secret: 'p' }), [])).toEqual({})
  expect(formProblems(hook({ version: 1 }), ['chat'])).toEqual({})
})

test.each<[string, ChannelForm, string]>([
  ['name', hook({ name: ' ' }), 'Give a name'],
  ['name', hook(), 'already'],
  ['url', hook({ name: 'x', url: '' }), 'Give the address'],
  ['url', hook({ name: 'x', url: 'ftp://a/' }), 'http or https'],
  ['url', hook({ name: 'x', url: 'https://' }), 'http or https'],
  ['url', hook({ name: 'x', url: 'https://u:p@a/' }), 'refused'],
  ['url', hook({ name: 'x', url: 'https://a/#b' }), 'after #'],
  ['host', mail({ host: '' }), 'mail server'],
  ['host', mail({ host: 'smtp://a' }), 'found'],
  ['port', mail({ port: '0' }), '65535'],
  ['port', mail({ port: '1e3' }), '65535'],
  ['user', mail({ security: MailSecurity.NONE, user: 'u', secret: 'p' }), 'encryption'],
  ['from', mail({ from: 'a' }), 'an address'],
  ['from', mail({ from: 'a@b\nBcc: c@d' }), 'an address'],
  ['to', mail({ to: ' \n' }), 'at least one'],
  ['to', mail({ to: 'a@b\nc' }), '“c”'],
  ['secret', mail({ user: 'u' }), 'takes a password'],
  ['secret', mail({ secret: 'p' }), 'Without a user'],
  ['secret', mail({ hasSecret: true, secretChoice: 'set', user: 'u', version: 1 }), 'new password'],
  ['kinds', hook({ name: 'x', allKinds: false }), 'at least one'],
])('%s: %#', (field, form, words) => {
  const found = formProblems(form, ['chat'])
  expect(Object.keys(found)).toEqual([field])
  expect(Object.values(found)[0]).toContain(words)
})

test('a secret is asked for again where it would go elsewhere', () => {
  const was = hook({ version: 1, hasSecret: true, secretChoice: 'keep' })
  expect(formProblems(was, [], was)).toEqual({})
  const moved = { ...was, url: 'https://other.example/' }
  expect(formProblems(moved, [], was).secret).toContain('sends elsewhere')
  expect(formProblems({ ...moved, secretChoice: 'remove' }, [], was)).toEqual({})
  expect(formProblems({ ...moved, secretChoice: 'set', secret: 'x' }, [], was)).toEqual({})
  const login = mail({ version: 1, user: 'u', hasSecret: true, secretChoice: 'keep' })
  expect(formProblems({ ...login, host: 'Mail.Example' }, [], login)).toEqual({})
  expect(formProblems({ ...login, port: '465' }, [], login).secret).toContain('password again')
})

// The sentences are the orchestrator's (orchestrator/notification).
test.each([
  ['webhook', 'url', 'the webhook’s URL has a user or a password (the part before @), where others would read it'],
  ['webhook', 'url', "the webhook's URL cannot be read, expected http or https with a host"],
  ['webhook', 'name', 'name "a\\nb" of a notification channel, expected a text in one line'],
  ['webhook', 'kinds', 'there is no kind "x" of notifications, expected one of run-ended'],
  ['webhook', 'secret', 'the channel now sends elsewhere than its secret was given for: give the secret again'],
  ['email', 'host', 'host "a b" of the mail server, expected a name or an address'],
  ['email', 'port', 'port 0 of the mail server, expected 1 to 65535'],
  ['email', 'security', 'the security of the connection is not given, expected STARTTLS, TLS or none'],
  ['email', 'user', 'a login without TLS would send the password of bob openly'],
  ['email', 'to', '0 recipients, expected 1 to 20'],
  ['email', 'from', 'address "me@", expected one such as ada@example.org, without a name'],
  ['email', 'to', 'address "you@", expected one such as ada@example.org, without a name'],
  ['email', 'secret', 'the password of bob at the mail server is missing: give it as the channel’s secret'],
  ['webhook', undefined, 'there are 20 notification channels, expected at most 20: remove one first'],
] as const)('a refusal of a %s is about %s: %s', (kind, field, text) => {
  expect(fieldOf(text, { kind, from: 'me@' })).toBe(field)
})

test('what somebody else changed or removed is a conflict', () => {
  expect([Code.Aborted, Code.FailedPrecondition, Code.NotFound].every(isConflict)).toBe(true)
  expect([Code.InvalidArgument, Code.Unavailable, Code.PermissionDenied].some(isConflict)).toBe(false)
})
