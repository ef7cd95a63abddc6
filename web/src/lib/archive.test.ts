import { expect, it } from 'vitest'
import { archiveAddress, progressText } from './archive'

it('archives are saved by their key', () => {
  expect(archiveAddress('day', 'A+/= b')).toBe('/download/day?key=A%2B%2F%3D+b')
  expect(archiveAddress('evidence', 'A')).toBe('/download/evidence?key=A')
})

it('progress has the time left where it is known', () => {
  expect(progressText({ doing: '', done: 0, secondsLeft: 0 })).toBe('looking for what there is: 0 %')
  expect(progressText({ doing: 'auditing run c-1', done: 0.254, secondsLeft: 90.2 })).toBe(
    'auditing run c-1: 25 %, about 1 min 30 s left',
  )
})
