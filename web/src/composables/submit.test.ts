import { Code, ConnectError } from '@connectrpc/connect'
import { expect, test } from 'vitest'
import { FormError, useSubmit } from './submit'

test('it is busy while it sends, and sends once', async () => {
  let finish = () => {}
  let calls = 0
  const { busy, submit } = useSubmit(() => {
    calls++
    return new Promise<void>((done) => (finish = done))
  })
  const first = submit()
  expect(busy.value).toBe(true)
  expect(await submit()).toBe(false)
  finish()
  expect(await first).toBe(true)
  expect([busy.value, calls]).toEqual([false, 1])
})
test('the reason of a refusal is shown until the next try', async () => {
  const answers = [new FormError('Give a name.'), new ConnectError('"a b" is no name', Code.InvalidArgument), undefined]
  const { error, submit } = useSubmit(() => {
    const e = answers.shift()
    if (e) throw e
  })
  expect([await submit(), error.value]).toEqual([false, 'Give a name.'])
  expect([await submit(), error.value]).toEqual([false, '"a b" is no name'])
  expect([await submit(), error.value]).toEqual([true, ''])
})
