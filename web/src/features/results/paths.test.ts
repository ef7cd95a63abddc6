import { expect, it } from 'vitest'
import { pathsOf } from './paths'

it('lists the paths of a transfer that used several, by interface or address', () => {
  const json =
    '{"elapsed_ns":1,"paths":[{"device":"radio0","address":"10.77.0.1","bytes":3,"share":0.75},{"address":"10.78.0.1","bytes":1,"share":0.25}]}'
  expect(pathsOf(json)).toEqual([
    { name: 'radio0', bytes: 3n, share: 0.75 },
    { name: '10.78.0.1', bytes: 1n, share: 0.25 },
  ])
  expect(pathsOf('{"elapsed_ns":1}')).toEqual([])
  expect(pathsOf('')).toEqual([])
})
