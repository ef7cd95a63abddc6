import { expect, it } from 'vitest'
import { maxBytes, profileName } from './profileText'

it('a profile is called as its text says', () => {
  for (const text of [
    'name: own-hf',
    '# ours\ntitle: x\nname: "own-hf"  # for plans\n',
    "name: 'own-hf'\r\ntitle: x\r\n",
  ])
    expect(profileName(text)).toEqual({ name: 'own-hf', problem: '' })
  for (const [text, problem] of [
    [' \n', 'Choose a file'],
    ['title: x\n  name: own-hf', 'no line such as'],
    ['name: Own HF', 'no line such as'],
    ['name: OwnHF', 'lower-case letters'],
    ['name: x\n' + '#'.repeat(maxBytes), 'larger than 256 KiB'],
  ] as const)
    expect(profileName(text).problem).toContain(problem)
})
