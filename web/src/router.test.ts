import { expect, test } from 'vitest'
import { createMemoryHistory, createRouter } from 'vue-router'
import { inItsCampaign } from './router'

const page = { template: '<p />' }
const started = () => {
  const router = createRouter({
    history: createMemoryHistory(),
    routes: [
      { path: '/', component: page },
      { path: '/runs/:campaign', name: 'campaign', component: page },
    ],
  })
  router.beforeEach(inItsCampaign)
  return router
}

test('the name of a run leads to it in its campaign, from outside and from another run', async () => {
  const router = started()
  await router.push('/')
  await router.push('/runs/abcd-2?trial=3')
  expect(router.currentRoute.value.fullPath).toBe('/runs/abcd?trial=3&run=abcd-2')
  await router.push('/runs/efgh-1')
  expect(router.currentRoute.value.fullPath).toBe('/runs/efgh?run=efgh-1')
  await router.push('/runs/abcd-1')
  expect(router.currentRoute.value.fullPath).toBe('/runs/abcd?run=abcd-1')
  await router.push('/runs/efgh')
  expect(router.currentRoute.value.fullPath).toBe('/runs/efgh')
})
