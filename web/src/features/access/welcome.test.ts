import { create } from '@bufbuild/protobuf'
import { Code, ConnectError } from '@connectrpc/connect'
import { flushPromises, mount } from '@vue/test-utils'
import { beforeEach, expect, test, vi } from 'vitest'
import { createMemoryHistory, createRouter } from 'vue-router'
import { Role, WhoAmIResponseSchema } from '@/gen/linktrial/v1/access_pb'

const api = vi.hoisted(() => ({
  calls: [] as unknown[],
  addFails: undefined as unknown,
  loginFails: undefined as unknown,
}))
vi.mock('@/lib/api', () => ({
  onLoginLost: () => {},
  explain: (e: unknown) => (e as { rawMessage?: string }).rawMessage ?? String(e),
  access: {
    addUser: async (message: unknown, options: unknown) => {
      api.calls.push(['add', message, options])
      if (api.addFails) throw api.addFails
      return {}
    },
    login: async (message: unknown) => {
      api.calls.push(['login', message])
      if (api.loginFails) throw api.loginFails
      return {}
    },
    whoAmI: async () => ({ user: 'anna', loginRequired: true }),
  },
}))
const { me } = await import('./session')
const { default: WelcomePage } = await import('@/pages/WelcomePage.vue')
const { setupToken } = await import('./model')

const token = `lts_${'a'.repeat(43)}`

async function page(hash: string, setupNeeded = true) {
  me.value = create(WhoAmIResponseSchema, { loginRequired: true, setupNeeded })
  const router = createRouter({
    history: createMemoryHistory(),
    routes: [
      { path: '/', component: { template: '<p>overview</p>' }, meta: { title: '' } },
      { path: '/login', component: { template: '<p/>' }, meta: { title: '' } },
      { path: '/welcome', component: WelcomePage, meta: { title: '', outside: true } },
    ],
  })
  await router.push(`/welcome${hash}`)
  const w = mount(WelcomePage, { global: { plugins: [router] } })
  async function give(name: string, password: string, again: string) {
    await w.find('input[name=username]').setValue(name)
    await w.find('input[name=password]').setValue(password)
    await w.find('input[name=again]').setValue(again)
    await w.find('form').trigger('submit')
    await flushPromises()
  }
  return { w, router, give }
}

beforeEach(() => {
  api.calls = []
  api.addFails = api.loginFails = undefined
})

test('the token makes an admin, who is logged in and sees the overview', async () => {
  const { w, router, give } = await page(`#${token}`)
  await give(' anna ', 'several words here', 'several words here')
  expect(api.calls).toEqual([
    [
      'add',
      { name: 'anna', role: Role.ADMIN, password: 'several words here' },
      { headers: { Authorization: `Bearer ${token}` } },
    ],
    ['login', { user: 'anna', password: 'several words here', code: '' }],
  ])
  expect(router.currentRoute.value.fullPath).toBe('/')
  w.unmount()
})

test('nothing is sent before name and passwords are right', async () => {
  const { w, give } = await page(`#${token}`)
  await give('', 'several words here', 'several words here')
  expect(w.text()).toContain('Give a name and a password.')
  await give('anna', 'several words here', 'other words')
  expect(w.text()).toContain('The two passwords are different.')
  expect(api.calls).toEqual([])
  w.unmount()
})

test('a refusal is shown in the words of the orchestrator', async () => {
  api.addFails = new ConnectError('the setup token is used up: log in as the admin it made', Code.Unauthenticated)
  const { w, router, give } = await page(`#${token}`)
  await give('anna', 'several words here', 'several words here')
  expect(w.text()).toContain('The setup token is used up: log in as the admin it made')
  expect(router.currentRoute.value.path).toBe('/welcome')
  w.unmount()
})

test('where the login fails, the admin is not made twice', async () => {
  api.loginFails = new ConnectError('no answer', Code.Unavailable)
  const { w, router, give } = await page(`#${token}`)
  await give('anna', 'several words here', 'several words here')
  api.loginFails = undefined
  await give('anna', 'several words here', 'several words here')
  expect(api.calls.map((c) => (c as unknown[])[0])).toEqual(['add', 'login', 'login'])
  expect(router.currentRoute.value.path).toBe('/')
  w.unmount()
})

test.each([
  [`#${token}`, false, 'There is an admin already: log in.'],
  ['', false, 'There is an admin already: log in.'],
  ['', true, 'This link is not complete'],
  ['#lts_short', true, 'This link is not complete'],
])('with %j, and an admin needed: %s, one sentence says what to do', async (hash, needed, words) => {
  const { w } = await page(hash, needed)
  expect(w.text()).toContain(words)
  expect(w.find('form').exists()).toBe(false)
  w.unmount()
})

test('a setup token is taken as a whole', () => {
  expect(setupToken(`#${token}`)).toBe(token)
  for (const bad of ['', '#', `#${token}x`, `#x${token}`, `#${token.replace('a', '\n')}`, `#ltp_${'a'.repeat(43)}`])
    expect(setupToken(bad)).toBe('')
})
