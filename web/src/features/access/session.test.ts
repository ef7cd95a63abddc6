import { beforeEach, expect, test, vi } from 'vitest'
import { create, type MessageInitShape } from '@bufbuild/protobuf'
import { timestampFromDate } from '@bufbuild/protobuf/wkt'
import { createMemoryHistory, createRouter } from 'vue-router'
import { Role, WhoAmIResponseSchema } from '@/gen/linktrial/v1/access_pb'

const api = vi.hoisted(() => ({ lost: () => {}, answer: undefined as unknown, login: {} as unknown }))
vi.mock('@/lib/api', () => ({
  onLoginLost: (then: () => void) => (api.lost = then),
  access: {
    whoAmI: async () => {
      if (api.answer instanceof Error) throw api.answer
      return api.answer
    },
    login: async () => api.login,
  },
}))
const { isValid, safeBack } = await import('./model')
const { expired, guard, loadSession, logIn, mayNot, me } = await import('./session')

const answer = (a: MessageInitShape<typeof WhoAmIResponseSchema>) => create(WhoAmIResponseSchema, a)
const page = { template: '<div/>' }
function site() {
  const router = createRouter({
    history: createMemoryHistory(),
    routes: [
      { path: '/', name: 'home', component: page, meta: { title: '' } },
      { path: '/runs', name: 'runs', component: page, meta: { title: '' } },
      { path: '/account', name: 'account', component: page, meta: { title: '' } },
      { path: '/login', name: 'login', component: page, meta: { title: '', outside: true } },
    ],
  })
  guard(router)
  return router
}
beforeEach(() => {
  me.value = undefined
  expired.value = false
})

test('who asks nobody lets everybody do everything', () => {
  expect(mayNot('admin', answer({ loginRequired: false }))).toBe('')
  expect(mayNot('admin', undefined)).toBe('')
})

test('each role may what the one before may, and the rest says why not', () => {
  const vera = answer({ loginRequired: true, user: 'vera', role: Role.VIEWER })
  expect(mayNot('viewer', vera)).toBe('')
  expect(mayNot('director', vera)).toBe('vera is a viewer: this takes a director')
  expect(mayNot('admin', answer({ loginRequired: true, user: 'dirk', role: Role.DIRECTOR }))).toBe(
    'dirk is a director: this takes an admin',
  )
  expect(mayNot('admin', answer({ loginRequired: true, user: 'anna', role: Role.ADMIN }))).toBe('')
  expect(mayNot('director', answer({ loginRequired: true }))).toBe('This takes a director')
})

test('a token works until it is revoked or expires', () => {
  const at = (ms: number) => timestampFromDate(new Date(ms))
  expect(isValid({ expires: at(2000) }, 1999)).toBe(true)
  expect(isValid({ expires: at(2000) }, 2000)).toBe(false)
  expect(isValid({ expires: at(2000), revoked: at(1) }, 1000)).toBe(false)
})

test('the way back leads nowhere outside', () => {
  expect(safeBack('/runs?x=1#y')).toBe('/runs?x=1#y')
  for (const bad of [
    undefined,
    null,
    '',
    'runs',
    '//evil.example',
    '/\\evil.example',
    'https://evil.example',
    '/login?back=/login',
    ['/a'],
  ])
    expect(safeBack(bad)).toBe('/')
})

test('who is not logged in is sent to the login page, and back', async () => {
  api.answer = answer({ loginRequired: true })
  const router = site()
  await router.push('/runs?find=x')
  expect(router.currentRoute.value.fullPath).toBe('/login?back=/runs?find=x')
  api.answer = answer({ loginRequired: true, user: 'vera', role: Role.VIEWER })
  await logIn('vera', 'x')
  await router.replace(safeBack(router.currentRoute.value.query.back))
  expect(router.currentRoute.value.fullPath).toBe('/runs?find=x')
  await router.push('/login')
  expect(router.currentRoute.value.path).toBe('/')
})

test('an open orchestrator has no login page', async () => {
  api.answer = answer({ loginRequired: false })
  const router = site()
  await router.push('/login')
  expect(router.currentRoute.value.path).toBe('/')
})

test('an orchestrator that does not answer hinders nobody', async () => {
  api.answer = new Error('gone')
  const router = site()
  await router.push('/runs')
  expect(router.currentRoute.value.path).toBe('/runs')
  // Later it answers, that it asks who calls.
  api.answer = answer({ loginRequired: true })
  api.lost()
  await vi.waitFor(() => expect(router.currentRoute.value.path).toBe('/login'))
})

test('a session that ends under a page covers it, and the page stays', async () => {
  api.answer = answer({ loginRequired: true, user: 'vera', role: Role.VIEWER })
  const router = site()
  await router.push('/runs')
  api.lost()
  expect(expired.value).toBe(true)
  expect(me.value?.user).toBe('vera')
  expect(router.currentRoute.value.path).toBe('/runs')
  await logIn('vera', 'x')
  expect(expired.value).toBe(false)
  // The orchestrator says so itself, too.
  api.answer = answer({ loginRequired: true })
  await loadSession()
  expect(expired.value).toBe(true)
})

test('whose role takes a second factor comes to the account page until there is one', async () => {
  api.answer = answer({ loginRequired: true, user: 'anna', role: Role.ADMIN, secondFactorMissing: true })
  const router = site()
  await router.push('/runs')
  expect(router.currentRoute.value.path).toBe('/account')
  api.answer = answer({ loginRequired: true, user: 'anna', role: Role.ADMIN })
  await loadSession()
  await router.push('/runs')
  expect(router.currentRoute.value.path).toBe('/runs')
})

test('a password alone opens nothing where a code is needed', async () => {
  api.answer = answer({ loginRequired: true })
  api.login = { codeNeeded: true }
  expect(await logIn('anna', 'x')).toBe(false)
  expect(me.value).toBeUndefined()
  api.login = {}
  expect(await logIn('anna', 'x', '123456')).toBe(true)
})
