import { expect, it } from 'vitest'
import { attachTable, telemetryPoll, telemetryWay, valueNote, valuePlace, type TelemetrySource } from './attach'

it('has a column for each role that is stated, with what holds for all', () => {
  const t = attachTable({
    reach: '',
    source: '',
    interface: 'eth1',
    mtu_bytes: 1400,
    roles: {
      client: {
        address: '10.77.0.1/24',
        radio: '10.77.0.101',
        routes: [{ to: '10.78.0.0/24', via: '10.77.0.101' }, { to: '10.79.0.0/24' }],
      },
      relay: { interface: 'eth2', forwarding: true },
      server: { forwarding: false },
    },
  })
  expect(t.columns).toEqual(['client', 'relay', 'server'])
  expect(Object.fromEntries(t.rows)).toEqual({
    Interface: ['eth1', 'eth2', 'eth1'],
    Address: ['10.77.0.1/24', 'not stated', 'not stated'],
    MTU: ['1400 B', '1400 B', '1400 B'],
    Routes: ['10.78.0.0/24 via 10.77.0.101, 10.79.0.0/24 on the interface', 'not stated', 'not stated'],
    Forwarding: ['not stated', 'on', 'off'],
    'The radio itself': ['10.77.0.101', 'as its agent is told', 'as its agent is told'],
  })
})

it('has one column where no role differs', () => {
  const t = attachTable({ reach: '', source: '' })
  expect(t.columns).toEqual(['every node'])
  expect(t.rows.map(([, cells]) => cells.length)).toEqual([1, 1, 1, 1, 1, 1])
})

const source: TelemetrySource = {
  name: 'radio',
  kind: 'snmp',
  on: 'real',
  source: '',
  poll: 'between-trials',
  interval_ns: 5e9,
  host: 'radio',
  port: 161,
  snmp: { version: '2c' },
}
it.each([
  [source, 'SNMP 2c at the radio, port 161', 'every 5 s at most, between trials'],
  [
    { ...source, snmp: { version: '3', user: 'reader' }, host: '10.0.0.9' },
    'SNMP v3 at 10.0.0.9, port 161',
    'every 5 s at most, between trials',
  ],
  [
    { ...source, kind: 'http', snmp: undefined, port: 8077, path: '/telemetry.json', poll: 'always', interval_ns: 1e9 },
    'HTTP at the radio, port 8077, /telemetry.json',
    'every 1 s at most, during trials too',
  ],
  [
    { ...source, kind: 'http', snmp: undefined, tls: true, path: '/x' },
    'HTTPS at the radio, port 161, /x',
    'every 5 s at most, between trials',
  ],
  [
    { ...source, kind: 'gpsd', snmp: undefined, host: '127.0.0.1', port: 2947, interval_ns: 120e9 },
    'gpsd at 127.0.0.1, port 2947',
    'every 2 min 0 s at most, between trials',
  ],
  [
    { ...source, kind: 'host', snmp: undefined, host: undefined, port: undefined },
    'the laptop’s power supply',
    'every 5 s at most, between trials',
  ],
])('says how and when a source is read', (t, way, poll) => {
  expect(telemetryWay(t)).toBe(way)
  expect(telemetryPoll(t)).toBe(poll)
})

it('says where a figure stands, and what is made of it', () => {
  expect(valuePlace({ name: 'snr', oid: '1.3.6', scale: 1 })).toBe('1.3.6')
  expect(valuePlace({ name: 'snr', pointer: '/snr', scale: 1 })).toBe('/snr')
  expect(valueNote({ name: 'uptime', unit: 's', scale: 0.01, counter: true })).toBe('s, read × 0.01, only grows')
  expect(valueNote({ name: 'n', scale: 1 })).toBe('')
})
