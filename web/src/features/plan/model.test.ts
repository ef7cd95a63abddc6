import { expect, it } from 'vitest'
import { localInput, localMoment, timeProblem } from './model'

it('reads back the moment that the fields of a form have', () => {
  const at = new Date(2026, 0, 9, 4, 5)
  expect(localInput(at)).toEqual({ day: '2026-01-09', time: '04:05' })
  expect(localMoment('2026-01-09', '04:05')).toEqual(at)
  expect(localMoment('2026-01-09', ' 4:05 ')).toEqual(at)
})

it('takes times of 24 hours alone', () => {
  for (const time of ['00:00', '9:30', '23:59']) expect(timeProblem(time)).toBe('')
  for (const time of ['', '24:00', '12:60', '2:30 PM', '1430', '12:3']) {
    expect(timeProblem(time)).not.toBe('')
    expect(localMoment('2026-01-09', time)).toBeUndefined()
  }
  expect(localMoment('', '12:00')).toBeUndefined()
})
