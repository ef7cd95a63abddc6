import { expect, it } from 'vitest'
import { maxBytes, topologyFile } from './file'

it('a topology is called as its file', () => {
  expect(topologyFile('valley-2.yaml', 900)).toEqual({ name: 'valley-2', problem: '' })
  expect(topologyFile('valley.YML', maxBytes)).toEqual({ name: 'valley', problem: '' })
  for (const [file, size, problem] of [
    ['valley.json', 1, 'no YAML file'],
    ['.yaml', 1, 'lower-case letters'],
    ['Valley.yaml', 1, 'lower-case letters'],
    ['my valley.yaml', 1, 'lower-case letters'],
    ['valley.yaml', maxBytes + 1, 'is larger than'],
  ] as const)
    expect(topologyFile(file, size).problem).toContain(problem)
})
