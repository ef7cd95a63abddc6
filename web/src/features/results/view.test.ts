import { expect, it } from 'vitest'
import { readView, writeView } from './view'

it('reads the plain view from an empty query, and writes nothing for it', () => {
  const v = readView({})
  expect(v).toMatchObject({
    ids: [],
    tab: 'figure',
    by: 'cell',
    lock: false,
    published: true,
    ideal: false,
    coded: false,
    page: 0,
  })
  expect(writeView(v)).toEqual({})
})

it('gives the same view again, whatever is in it', () => {
  const v = {
    ...readView({}),
    ids: ['c1', 'r2'],
    choose: true,
    find: 'hf',
    tab: 'sequence' as const,
    by: 'radio' as const,
    lock: true,
    reference: 'udt',
    ideal: true,
    coded: true,
    published: false,
    radios: ['a', 'b'],
    topologies: ['k-lot'],
    sizes: ['1024'],
    settings: ['loss=10 %', 'rate=a=b'],
    hidden: ['x'],
    sort: '-average',
    axis: 'size',
    metric: 'gain',
    run: 'r2',
    iteration: 7,
    verdict: 'other',
    page: 3,
  }
  const q = writeView(v) as Record<string, string | string[]>
  expect(readView(q)).toEqual(v)
})

it.each([
  [
    { tab: 'nonsense', by: 'nothing', iteration: '-3', page: 'x' },
    { tab: 'figure', by: 'cell', iteration: 0, page: 0 },
  ],
  [{ ids: ['a', 'a', null, ''] }, { ids: ['a'] }],
  [{ tab: ['cdf', 'table'] }, { tab: 'cdf' }],
])('makes the best of %j', (query, view) => expect(readView(query)).toMatchObject(view))
