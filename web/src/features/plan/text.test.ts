import { readdirSync, readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { describe, expect, it, vi } from 'vitest'
import { edit, lineOf, locked, move, readText } from './text'

vi.setConfig({ testTimeout: 60_000 }) // only to detect hangs

const folder = resolve(__dirname, '../../../../plans')
const plans = readdirSync(folder).filter((f) => f.endsWith('.yaml'))
const text = (name: string) => readFileSync(resolve(folder, name), 'utf8')

const small = `# On top
name: a   # the name
radio: mpu4

# Sizes
size: [256 KiB, 1 MiB] # two
treatments:
  # first
  - {name: x, protocol: tcp, options: {congestion: cubic}}
  - name: y
    protocol: udt
iterations: 3
`

/** Lines that differ, for edits that must touch one place alone. */
function changed(a: string, b: string): string[] {
  const left = new Set(a.split('\n'))
  return b.split('\n').filter((l) => !left.has(l))
}

describe('edit', () => {
  it('changes a value in its place and nothing else', () => {
    const out = edit(small, ['name'], 'b')
    expect(out).toBe(small.replace('name: a ', 'name: b '))
    expect(edit(small, ['iterations'], 12)).toBe(small.replace('iterations: 3', 'iterations: 12'))
    expect(edit(small, ['treatments', 0, 'options', 'congestion'], 'bbr')).toBe(small.replace('cubic', 'bbr'))
  })
  it('quotes what would be read as something else', () => {
    expect(edit(small, ['name'], 'yes: no')).toContain('name: "yes: no" ')
    expect(edit(small, ['name'], '12')).toContain('name: "12" ')
    expect(edit(small, ['name'], 'true')).toContain('name: "true" ')
    expect(edit(small, ['name'], 'a, b')).toContain('name: "a, b" ')
  })
  it('adds options, entries and keys where plans have them', () => {
    expect(changed(small, edit(small, ['treatments', 0, 'options', 'mss'], '500 B'))).toEqual([
      '  - {name: x, protocol: tcp, options: {congestion: cubic, mss: 500 B}}',
    ])
    expect(changed(small, edit(small, ['treatments', 1, 'options', 'mss'], '500 B'))).toEqual([
      '    options: {mss: 500 B}',
    ])
    expect(changed(small, edit(small, ['limits', 'connect'], '10s'))).toEqual(['limits: {connect: 10s}'])
    const out = edit(small, ['topology'], ['vip-lot', 'k-lot'])
    expect(changed(small, out)).toEqual(['topology: [vip-lot, k-lot]'])
    expect(out.indexOf('topology:')).toBeGreaterThan(out.indexOf('radio:'))
    expect(out.indexOf('topology:')).toBeLessThan(out.indexOf('size:'))
    expect(readText(out).errors).toEqual([])
    expect(changed(small, edit(small, ['sweep'], [{ name: 'loss', set: 'channel.loss', values: [0, 0.1] }]))).toEqual([
      'sweep:',
      '  - {name: loss, set: channel.loss, values: [0, 0.1]}',
    ])
  })
  it('takes away', () => {
    const one = edit(small, ['treatments', 1], undefined)
    expect(readText(one).value).toMatchObject({ treatments: [{ name: 'x' }] })
    expect(one).toContain('# first')
    expect(edit(small, ['radio'], undefined)).toBe(small.replace('radio: mpu4\n', ''))
    expect(edit(small, ['treatments', 0, 'options'], undefined)).toContain('- {name: x, protocol: tcp}\n')
  })
  it('swaps a single name for a list and keeps the comment', () => {
    expect(edit(small, ['size'], '3 KB')).toContain('size: 3 KB # two')
    expect(edit(small, ['radio'], ['mpu4', 'prc-152a'])).toContain('radio: [mpu4, prc-152a]\n\n# Sizes')
  })
  it('begins lists', () => {
    expect(edit('name: a\n', ['treatments', 0], { name: 'x', protocol: 'tcp' })).toBe(
      'name: a\ntreatments:\n  - {name: x, protocol: tcp}\n',
    )
    expect(edit('name: a\ntreatments: []\n', ['treatments', 0], { name: 'x' })).toBe(
      'name: a\ntreatments: [{name: x}]\n',
    )
  })
  it('moves entries with their comments', () => {
    const out = move(small, ['treatments'], 1, 0)
    expect(readText(out).value).toMatchObject({ treatments: [{ name: 'y' }, { name: 'x' }] })
    expect(out).toContain('  # first\n  - {name: x')
    expect(out.startsWith('# On top\nname: a   # the name\n')).toBe(true)
    expect(move(small, ['treatments'], 1, 2)).toBe(small)
  })
  it('starts from nothing', () => {
    const out = edit('', ['name'], 'a')
    expect(readText(out).value).toEqual({ name: 'a' })
    expect(edit('# only this\n', ['name'], 'a')).toBe('# only this\nname: a\n')
  })
  it('refuses a text that it cannot read', () => {
    expect(() => edit('name: [a', ['name'], 'b')).toThrow(/line 1/)
  })
  it('knows seeds of 64 bits', () => {
    const t = `${small}seed: 18446744073709551615\n`
    expect((readText(t).value as { seed: bigint }).seed).toBe(18446744073709551615n)
    expect(edit(t, ['treatments', 0, 'options', 'mss'], '500 B')).toContain('seed: 18446744073709551615\n')
  })
})

describe.each(plans)('%s', (name) => {
  const t = text(name)
  it('stays as it is but for what is edited', () => {
    expect(readText(t).errors).toEqual([])
    expect(changed(t, edit(t, ['iterations'], 7))).toEqual([expect.stringMatching(/^iterations: 7/)])
    expect(changed(t, edit(t, ['limits', 'pause'], '3s'))).toEqual([expect.stringMatching(/^limits: .*pause: 3s/)])
    const more = edit(t, ['treatments', (readText(t).value as { treatments: unknown[] }).treatments.length], {
      name: 'new',
      protocol: 'tcp',
    })
    expect(changed(t, more)).toEqual(['  - {name: new, protocol: tcp}'])
    expect(more.length).toBe(t.length + '  - {name: new, protocol: tcp}\n'.length)
  })
})

it('says where things are', () => {
  const p = readText(small)
  expect(lineOf(p, ['size'])).toBe(6)
  expect(lineOf(p, ['treatments', 1])).toBe(10)
  expect(lineOf(p, ['nothing'])).toBe(0)
  expect(readText('a: [1\nb: 2').errors[0]!.line).toBeGreaterThan(0)
  expect(readText('- a').errors).toHaveLength(1)
})

it('leaves what is shared to the text', () => {
  const p = readText('a: &x {k: 1}\nb: *x\nc: {d: *x}\ne: 1\n')
  expect(locked(p, ['a'])).toBe(true)
  expect(locked(p, ['b'])).toBe(true)
  expect(locked(p, ['b', 'k'])).toBe(true)
  expect(locked(p, ['c'])).toBe(true)
  expect(locked(p, ['e'])).toBe(false)
  expect(locked(p, ['nothing'])).toBe(false)
})
