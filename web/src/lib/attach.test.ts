import { expect, it } from 'vitest'
import { attachTable, valueNote } from './attach'

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

it('says what is made of a number', () => {
  expect(valueNote({ unit: 's', scale: 0.01, counter: true })).toBe('s, read × 0.01, only grows')
  expect(valueNote({ unit: '', scale: 1, counter: false })).toBe('')
})
