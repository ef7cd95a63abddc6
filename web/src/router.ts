import type { RouteLocationNormalized, RouteRecordRaw } from 'vue-router'
import { createRouter, createWebHistory } from 'vue-router'

declare module 'vue-router' {
  interface RouteMeta {
    title: string
    /** Place in the main menu; routes without one are reached from others. */
    menu?: number
    /** The menu's entry that is lit while the page shows; the route's own name where not set. */
    under?: string
    /** The role that the page takes; without it, a viewer's. */
    role?: 'admin'
    /** The page is for those who are not logged in. */
    outside?: boolean
  }
}

// The view is in the URL: whatever a page filters, selects or zooms goes into the query.
export const routes: RouteRecordRaw[] = [
  {
    path: '/',
    name: 'overview',
    component: () => import('@/pages/OverviewPage.vue'),
    meta: { title: 'Overview', menu: 0 },
  },
  {
    path: '/measure',
    name: 'measure',
    component: () => import('@/pages/MeasurePage.vue'),
    meta: { title: 'Measure', menu: 15 },
  },
  {
    path: '/plans',
    name: 'plans',
    component: () => import('@/pages/PlansPage.vue'),
    meta: { title: 'Plans', menu: 20 },
  },
  { path: '/runs', name: 'runs', component: () => import('@/pages/RunsPage.vue'), meta: { title: 'Runs', menu: 30 } },
  {
    path: '/runs/:campaign',
    name: 'campaign',
    component: () => import('@/pages/CampaignPage.vue'),
    props: true,
    meta: { title: 'Campaign', under: 'runs' },
  },
  {
    path: '/plans/:name',
    name: 'plan',
    component: () => import('@/pages/PlanPage.vue'),
    props: true,
    meta: { title: 'Plan', under: 'plans' },
  },
  {
    path: '/results',
    name: 'results',
    component: () => import('@/pages/ResultsPage.vue'),
    meta: { title: 'Results', menu: 40 },
  },
  {
    path: '/results/attempt/:run/:trial(\\d+)',
    name: 'attempt',
    component: () => import('@/pages/AttemptPage.vue'),
    meta: { title: 'Trial', under: 'results' },
  },
  { path: '/map', name: 'map', component: () => import('@/pages/MapPage.vue'), meta: { title: 'Map', menu: 50 } },
  {
    path: '/profiles',
    name: 'profiles',
    component: () => import('@/pages/ProfilesPage.vue'),
    meta: { title: 'Radios', menu: 60 },
  },
  {
    path: '/fleet',
    name: 'fleet',
    component: () => import('@/pages/FleetPage.vue'),
    meta: { title: 'Fleet', menu: 10 },
  },
  {
    path: '/fleet/identities',
    name: 'identities',
    component: () => import('@/pages/IdentitiesPage.vue'),
    meta: { title: 'Node identities', under: 'fleet' },
  },
  {
    path: '/setup',
    name: 'setup',
    component: () => import('@/pages/SetupPage.vue'),
    meta: { title: 'Set up', menu: 15 },
  },
  {
    path: '/protocols',
    name: 'protocols',
    component: () => import('@/pages/ProtocolsPage.vue'),
    meta: { title: 'Protocols', menu: 70 },
  },
  {
    path: '/protocols/approvals',
    name: 'approvals',
    component: () => import('@/pages/ApprovalsPage.vue'),
    meta: { title: 'Approvals', under: 'protocols' },
  },
  { path: '/lab', name: 'lab', component: () => import('@/pages/LabPage.vue'), meta: { title: 'Lab', menu: 80 } },
  {
    path: '/users',
    name: 'users',
    component: () => import('@/pages/UsersPage.vue'),
    meta: { title: 'Users', menu: 90, role: 'admin' },
  },
  {
    path: '/audit',
    name: 'audit',
    component: () => import('@/pages/AuditPage.vue'),
    meta: { title: 'Audit log', menu: 95, role: 'admin' },
  },
  {
    path: '/notifications',
    name: 'notifications',
    component: () => import('@/pages/NotificationsPage.vue'),
    meta: { title: 'Notifications' },
  },
  { path: '/account', name: 'account', component: () => import('@/pages/AccountPage.vue'), meta: { title: 'Account' } },
  {
    path: '/login',
    name: 'login',
    component: () => import('@/pages/LoginPage.vue'),
    meta: { title: 'Log in', outside: true },
  },
  {
    path: '/welcome',
    name: 'welcome',
    component: () => import('@/pages/WelcomePage.vue'),
    meta: { title: 'Welcome', outside: true },
  },
  {
    path: '/:rest(.*)*',
    name: 'not-found',
    component: () => import('@/pages/NotFoundPage.vue'),
    meta: { title: 'Not found' },
  },
]

export const router = createRouter({
  history: createWebHistory(),
  routes,
  scrollBehavior: (to, from, saved) => saved ?? (to.path === from.path ? {} : { top: 0 }),
})

// The name of a run, as agents, lists and the command line have it, leads to it in its campaign:
// from the page of another run, too, where a guard of the route alone is not asked.
export function inItsCampaign(to: Pick<RouteLocationNormalized, 'name' | 'params' | 'query'>) {
  const run = to.name === 'campaign' ? String(to.params.campaign) : ''
  const campaign = /^([^-]+)-\d+$/.exec(run)?.[1]
  return campaign === undefined || { path: `/runs/${campaign}`, query: { ...to.query, run } }
}
router.beforeEach(inItsCampaign)

router.afterEach((to) => {
  document.title = `${to.meta.title} · Linktrial`
})
