import { describe, expect, it } from 'vitest'
import { RunState } from '@/gen/linktrial/v1/operator_pb'
import { summaryOf } from './fixture'
import { nextSort, pText, rowsOf, sortRows, tableColumns } from './table'

const runs = [
  summaryOf({ id: 'a', radio: 'r1', topology: 't1' }),
  summaryOf({ id: 'b', radio: 'r1', topology: 't2', state: RunState.ABORTED }),
  summaryOf({
    id: 'c',
    radio: 'r2',
    topology: 't1',
    missing: 'udt',
    attempts: [{ iteration: 1, treatment: 0, kbps: 500 }],
  }),
]
const names = (rows: ReturnType<typeof rowsOf>) => rows.map((r) => `${r.run.run!.id}.${r.t.name}`).join(' ')

describe('rows', () => {
  const rows = rowsOf(runs, [], new Map())
  it("are in Table 2's order: place, radio, treatment", () =>
    expect(names(rows)).toBe('a.cubic a.udt c.cubic c.udt b.cubic b.udt'))
  it('say what is partial', () => {
    expect(rows[0]!.partial).toBe('')
    expect(rows[4]!.partial).toBe('partial: run aborted')
  })
  it('leave hidden treatments out', () =>
    expect(names(rowsOf(runs, ['udt'], new Map()))).toBe('a.cubic c.cubic b.cubic'))
  it('are sorted by any column, those without a value last, either way', () => {
    expect(names(sortRows(rows, '-average'))).toBe('c.cubic a.udt b.udt a.cubic b.cubic c.udt')
    expect(names(sortRows(rows, 'average'))).toBe('a.cubic b.cubic a.udt b.udt c.cubic c.udt')
    expect(names(sortRows(rows, 'treatment'))).toBe('a.cubic c.cubic b.cubic a.udt c.udt b.udt')
    expect(sortRows(rows, 'nonsense')).toBe(rows)
  })
})

it('goes through the ways of sorting and back', () => {
  const average = tableColumns.find((c) => c.name === 'average')!
  const ways = ['', '', '', ''].reduce<string[]>((all) => [...all, nextSort(all.at(-1) ?? '', average)], [])
  expect(ways).toEqual(['-average', 'average', '', '-average'])
  expect(nextSort('-average', tableColumns[0]!)).toBe('place')
})
it.each([
  [undefined, '–'],
  [0.0004, '< 0.001'],
  [0.0416, '0.042'],
])('writes p %s as %s', (p, text) => expect(pText(p)).toBe(text))
