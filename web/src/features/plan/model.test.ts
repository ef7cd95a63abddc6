import { expect, it } from 'vitest'
import { momentInput, momentOf, timeProblem } from './model'

it('reads back the moment that the fields of a form have', () => {
  const at = new Date('2026-01-09T04:05:00Z')
  expect(momentInput(at)).toEqual({ day: '2026-01-09', time: '04:05' })
  expect(momentOf('2026-01-09', '04:05')).toEqual(at)
  expect(momentOf('2026-01-09', ' 4:05 ')).toEqual(at)
})

it('takes times of 24 hours alone', () => {
  for (const time of ['00:00', '9:30', '23:59']) expect(timeProblem(time)).toBe('')
  for (const time of ['', '24:00', '12:60', '2:30 PM', '1430', '12:3']) {
    expect(timeProblem(time)).not.toBe('')
    expect(momentOf('2026-01-09', time)).toBeUndefined()
  }
  expect(momentOf('', '12:00')).toBeUndefined()
})
