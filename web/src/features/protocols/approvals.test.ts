import { create, type MessageInitShape } from '@bufbuild/protobuf'
import { expect, test } from 'vitest'
import { DriverOnNodeSchema } from '@/gen/linktrial/v1/trust_pb'
import { byDigest, digestKind, digestShort, parseDriver } from './approvals'

const a = `sha256:${'a1'.repeat(32)}`
const b = `image:sha256:${'b2'.repeat(32)}`
const on = (d: MessageInitShape<typeof DriverOnNodeSchema>) => create(DriverOnNodeSchema, d)

test('a digest stands once, with the nodes that have it', () => {
  expect(
    byDigest([
      on({ node: 'server', protocol: 'udt', digest: a, version: '2' }),
      on({ node: 'client', protocol: 'tcp', digest: a, version: '1' }),
      on({ node: 'server', protocol: 'tcp', digest: a, version: '1' }),
      on({ node: 'server', protocol: 'tcp', digest: b }),
    ]),
  ).toEqual([
    { protocol: 'tcp', digest: b, versions: [], nodes: ['server'] },
    { protocol: 'tcp', digest: a, versions: ['1'], nodes: ['client', 'server'] },
    { protocol: 'udt', digest: a, versions: ['2'], nodes: ['server'] },
  ])
})

test('digests are short as on the command line', () => {
  expect([digestShort(a), digestKind(a)]).toEqual(['sha256:a1a1a1a1a1a1…', 'folder'])
  expect([digestShort(b), digestKind(b)]).toEqual(['image:sha256:b2b2b2b2b2b2…', 'image'])
})

test('a driver is named as the command line names it', () => {
  expect(parseDriver(` tcp@${a} `)).toEqual({ protocol: 'tcp', digest: a })
  expect(parseDriver(`my-haul@${b}`)).toEqual({ protocol: 'my-haul', digest: b })
  for (const bad of [
    '',
    'tcp',
    a,
    `tcp@${a}0`,
    `tcp@${a.toUpperCase()}`,
    `TCP@${a}`,
    `tcp@${a.slice(0, -1)}`,
    'tcp@sha256:',
    `tcp@md5:${'a1'.repeat(32)}`,
    `tcp ${a}`,
  ])
    expect(parseDriver(bad)).toBeUndefined()
})
