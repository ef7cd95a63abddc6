import { expect, it } from 'vitest'
import type { Manifest } from '@/features/plan/drivers'
import { withUnits } from './options'

const manifests: Manifest[] = [
  {
    name: 'sctp',
    title: 'SCTP',
    summary: '',
    version: '1',
    options: [
      { name: 'sack_delay', type: 'duration', help: '' },
      { name: 'message_size', type: 'size', help: '' },
      { name: 'max_retransmissions', type: 'int', help: '' },
    ],
  },
]

it('says in which unit an option is', () => {
  const t = { protocol: 'sctp', options: { sack_delay: 200, message_size: 65536, max_retransmissions: 5, other: 7 } }
  expect(JSON.parse(withUnits(JSON.stringify(t), manifests))).toEqual({
    protocol: 'sctp',
    options: { sack_delay: '200ms', message_size: '64 KiB', max_retransmissions: 5, other: 7 },
  })
  // A mix is a list of treatments; a protocol that is not installed has no units.
  expect(JSON.parse(withUnits(JSON.stringify([t]), manifests))[0].options.sack_delay).toBe('200ms')
  expect(JSON.parse(withUnits(JSON.stringify(t), []))).toEqual(t)
  expect(withUnits('', manifests)).toBe('')
})
