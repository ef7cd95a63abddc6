import { expect, it } from 'vitest'
import { copyOf, documentName, maxBytes } from './documentText'

it('a document is called as its text says', () => {
  for (const text of [
    'name: own-hf',
    '# ours\ntitle: x\nname: "own-hf"  # for plans\n',
    "name: 'own-hf'\r\ntitle: x\r\n",
  ])
    expect(documentName(text, 'radio')).toEqual({ name: 'own-hf', problem: '' })
  for (const [text, problem] of [
    [' \n', 'Choose a file, or paste the text of a profile.'],
    ['title: x\n  name: own-hf', 'no line such as “name: own-radio”'],
    ['name: Own HF', 'no line such as'],
    ['name: OwnHF', 'lower-case letters'],
    ['name: ' + 'x'.repeat(64), 'more than 63'],
    ['name: x\n' + '#'.repeat(maxBytes), 'larger than 256 KiB'],
  ] as const)
    expect(documentName(text, 'radio').problem).toContain(problem)
  expect(documentName('', 'topology').problem).toBe('Choose a file, or paste the text of a topology.')
  expect(documentName('title: x', 'topology').problem).toContain('“name: own-topology”')
})

it('a copy has a free name, and is else the same', () => {
  const text = '# measured\nname: mpu4  # as in plans\ntitle: WaveRelay MPU4\n'
  expect(copyOf(text, ['mpu4'])).toBe('# measured\nname: mpu4-copy\ntitle: WaveRelay MPU4\n')
  expect(copyOf(text, ['mpu4', 'mpu4-copy', 'mpu4-copy-2'])).toContain('name: mpu4-copy-3\n')
  expect(copyOf('name: mpu4-copy-2\n', ['mpu4-copy'])).toBe('name: mpu4-copy-2\n')
  const long = copyOf(`name: ${'x'.repeat(63)}\n`, [`${'x'.repeat(50)}-copy`])
  expect(documentName(long, 'radio')).toEqual({ name: `${'x'.repeat(50)}-copy-2`, problem: '' })
  expect(copyOf('title: x\n', [])).toBe('title: x\n')
})
