import { create, type MessageInitShape } from '@bufbuild/protobuf'
import { timestampFromDate } from '@bufbuild/protobuf/wkt'
import { expect, test } from 'vitest'
import {
  GetAuthorityResponse_Mode as Mode,
  NodeIdentity_State as State,
  NodeIdentitySchema,
} from '@/gen/linktrial/v1/enrol_pb'
import { enrolCommand, noIdentities, onOwnMachine, renewalIsLate } from './identities'
import { identityState } from '@/lib/states'

const day = 86_400_000
const at = (days: number) => timestampFromDate(new Date(days * day))
const node = (n: MessageInitShape<typeof NodeIdentitySchema>) => create(NodeIdentitySchema, { name: 'client', ...n })

test('only an orchestrator that speaks TLS asks nodes who they are', () => {
  expect(noIdentities(Mode.TLS)).toBe('')
  expect(noIdentities(undefined)).toBe('')
  expect(noIdentities(Mode.LOOPBACK)).toContain('its own machine only')
  expect(noIdentities(Mode.OPEN)).toContain('--open')
})

test('a certificate that should have been renewed is told before it ends', () => {
  const n = node({ state: State.ENROLLED, enrolled: at(0), expires: at(30) })
  expect(renewalIsLate(n, 20 * day)).toBe(false) // the agent renews now
  expect(renewalIsLate(n, 25 * day)).toBe(false)
  expect(renewalIsLate(n, 25 * day + 1)).toBe(true)
  expect(renewalIsLate({ ...n, state: State.REVOKED }, 29 * day)).toBe(false)
  expect(renewalIsLate(node({ state: State.INVITED, expires: at(1) }), 29 * day)).toBe(false)
})

test('every state has a word, also one of a later version', () => {
  const words = Object.values(State)
    .filter((s): s is State => typeof s === 'number')
    .map((s) => identityState(s).word)
  expect(new Set(words).size).toBe(words.length)
  expect(identityState(99 as State).word).toBe('unknown')
})

test('the command names the orchestrator as the page has it, and keeps the token out of the list of processes', () => {
  expect(enrolCommand('https://10.0.0.1:7700')).toBe(
    'linktrial node enrol --orchestrator https://10.0.0.1:7700 --token-file -',
  )
})

test.each([
  ['127.0.0.1', true],
  ['127.1.2.3', true],
  ['localhost', true],
  ['[::1]', true],
  ['10.0.0.1', false],
  ['127.0.0.1.example', false],
  ['lab-127', false],
])('%s leads to this machine alone: %s', (host, own) => expect(onOwnMachine(host)).toBe(own))
