import { expect, it } from 'vitest'
import { momentInput, momentOf, type RuleFields, ruleOf, ruleProblem, timeProblem } from './model'

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

it('writes the fields of a rule as the orchestrator reads it', () => {
  const f: RuleFields = { repeat: 'daily', days: [], time: ' 8:30', zone: 'Europe/Berlin', hours: '6', until: '' }
  expect(ruleOf(f)).toBe('daily 8:30 Europe/Berlin')
  expect(ruleOf({ ...f, zone: '', until: '2026-12-31' })).toBe('daily 8:30 until 2026-12-31')
  expect(ruleOf({ ...f, repeat: 'days', days: ['sun', 'mon'] })).toBe('mon,sun 8:30 Europe/Berlin')
  expect(ruleOf({ ...f, repeat: 'every', until: '2026-12-31' })).toBe('every 6h until 2026-12-31')
  expect(ruleProblem(f)).toBe('')
  expect(ruleProblem({ ...f, time: '25:00' })).toMatch('hours and minutes')
  expect(ruleProblem({ ...f, repeat: 'days' })).toMatch('at least one day')
  expect(ruleProblem({ ...f, repeat: 'every', hours: '0' })).toMatch('whole number')
  expect(ruleProblem({ ...f, repeat: 'every', time: '' })).toBe('')
})
