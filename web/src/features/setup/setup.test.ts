import { create } from '@bufbuild/protobuf'
import { expect, test } from 'vitest'
import { about, formOf, laptops, orderOf, reachLine, rolesLine, type RadioForm } from './setup'
import { LinkSchema } from '@/gen/linktrial/v1/fleet_pb'
import { NodeInterfaceSchema, NodeRadioSchema } from '@/gen/linktrial/v1/interface_pb'
import { NodeSchema } from '@/gen/linktrial/v1/operator_pb'

const radio = create(NodeRadioSchema, {
  interface: 'eth1',
  address: '10.77.0.1/24',
  role: 'client',
  mtuBytes: 1400,
  routes: [{ to: '10.77.1.0/24', via: '10.77.0.2' }],
})

test('a form is sent as it was filled in', () => {
  expect(formOf(radio)).toEqual({
    interface: 'eth1',
    address: '10.77.0.1/24',
    role: 'client',
    mtu: '1400',
    routes: '10.77.1.0/24 over 10.77.0.2',
    profile: '',
  })
  expect(orderOf(formOf(radio))).toEqual({
    interface: 'eth1',
    address: '10.77.0.1/24',
    role: 'client',
    mtuBytes: 1400,
    routes: [{ to: '10.77.1.0/24', via: '10.77.0.2' }],
    profile: '',
  })
})

test.each<[string, Partial<RadioForm>, string]>([
  ['no interface', { interface: '' }, 'Choose the interface that leads to the radio.'],
  ['an MTU that is no number', { mtu: 'big' }, 'MTU “big”: give a number of bytes such as 1500, or leave it empty.'],
  ['half a route', { routes: '10.77.1.0/24\n' }, 'Route “10.77.1.0/24”: give one as 10.77.1.0/24 over 10.77.0.2.'],
])('%s is said before anything is sent', (_, change, says) => {
  expect(orderOf({ ...formOf(radio), ...change })).toBe(says)
})

test('an empty MTU leaves it as it is', () => {
  expect(orderOf({ ...formOf(radio), mtu: ' ', routes: '\n' })).toMatchObject({ mtuBytes: 0, routes: [] })
})

test('an interface in one line', () => {
  const i = { name: 'eth1', kind: 'usb', driver: 'r8152', up: true, carrier: true, speedMbit: 100n, mtuBytes: 1500 }
  expect(about(create(NodeInterfaceSchema, { ...i, mac: '02:00:00:00:00:01', receiving: true }))).toBe(
    'USB (r8152) · 100 Mbit/s · MTU 1500 B · no address · 02:00:00:00:00:01 · receives packets',
  )
  expect(about(create(NodeInterfaceSchema, { kind: 'wired', mtuBytes: 1500, addresses: ['10.0.0.1/24'] }))).toBe(
    'wired · down · MTU 1500 B · 10.0.0.1/24',
  )
})

const node = (name: string, role: string, radioAddress = '', more = {}) =>
  create(NodeSchema, { name, role, radioAddress, connected: true, ...more })
const link = (from: string, to: string, reachable: boolean) => create(LinkSchema, { from, to, reachable })

test('laptops are connected and of no lab', () => {
  const all = [
    node('a', 'client'),
    node('b', 'server', '', { connected: false }),
    node('c', 'relay', '', { emulated: true }),
  ]
  expect(laptops(all).map((n) => n.name)).toEqual(['a'])
})

test('which roles have radios', () => {
  expect(rolesLine([node('a', 'client')])).toBe('No laptop has a radio yet: a link needs a client and a server.')
  expect(rolesLine([node('a', 'client', '10.77.0.1'), node('b', 'server')])).toBe(
    'Radios: client (a, 10.77.0.1). A link still needs a server.',
  )
  expect(rolesLine([node('a', 'client', '10.77.0.1'), node('b', 'server', '10.77.0.3')])).toBe(
    'Radios: client (a, 10.77.0.1), server (b, 10.77.0.3).',
  )
})

test('whether they reach each other', () => {
  const both = [node('a', 'client', '10.77.0.1'), node('b', 'server', '10.77.0.3')]
  expect(reachLine(both.slice(0, 1), [])).toBe('')
  expect(reachLine(both, [link('a', 'b', true)])).toBe('Whether they reach each other is not known: start a preflight.')
  expect(reachLine(both, [link('a', 'b', true), link('b', 'a', true)])).toBe('They reach each other over the radio.')
  expect(reachLine(both, [link('a', 'b', true), link('b', 'a', false)])).toBe('Not reached over the radio: b → a.')
})
