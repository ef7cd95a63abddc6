// What the results page shows is in its URL, so that a link shows the same
// again: campaigns and runs, tab, filters, overlays, axes.
import type { LocationQuery, LocationQueryRaw, LocationQueryValue } from 'vue-router'

export const tabs = [
  { name: 'figure', title: 'Figure' },
  { name: 'table', title: 'Table' },
  { name: 'differences', title: 'Differences' },
  { name: 'cumulative', title: 'Per radio' },
  { name: 'cdf', title: 'Distribution' },
  { name: 'delivery', title: 'Time to delivery' },
  { name: 'iterations', title: 'Over iterations' },
  { name: 'sweep', title: 'Sweep' },
  { name: 'sequence', title: 'Time–sequence' },
  { name: 'trials', title: 'Trials' },
] as const

export type Tab = (typeof tabs)[number]['name']

/** What shares a panel: one plan cell, or all runs of a place, a radio or a size. */
export const groupings = [
  { name: 'cell', title: 'place, radio and size' },
  { name: 'topology', title: 'place' },
  { name: 'radio', title: 'radio' },
  { name: 'size', title: 'size' },
  { name: 'run', title: 'run' },
] as const

export type Grouping = (typeof groupings)[number]['name']

export interface View {
  /** Campaigns and runs, in the order they were chosen. */
  ids: string[]
  /** The list to choose from is open. */
  choose: boolean
  find: string
  tab: Tab
  by: Grouping
  /** One scale for all panels. */
  lock: boolean
  reference: string
  ideal: boolean
  coded: boolean
  published: boolean
  radios: string[]
  topologies: string[]
  sizes: string[]
  settings: string[]
  hidden: string[]
  sort: string
  axis: string
  metric: string
  run: string
  iteration: number
  verdict: string
  page: number
}

const strings = (v: LocationQueryValue | LocationQueryValue[] | undefined): string[] =>
  (Array.isArray(v) ? v : [v]).filter((x): x is string => !!x)

const one = (v: LocationQueryValue | LocationQueryValue[] | undefined): string => strings(v)[0] ?? ''

const count = (v: LocationQueryValue | LocationQueryValue[] | undefined): number =>
  Math.max(0, Math.trunc(Number(one(v))) || 0)

function known<T extends string>(list: readonly { name: T }[], v: string): T {
  return list.find((x) => x.name === v)?.name ?? list[0]!.name
}

export function readView(q: LocationQuery): View {
  return {
    ids: [...new Set(strings(q.ids))],
    choose: one(q.choose) === '1',
    find: one(q.find),
    tab: known(tabs, one(q.tab)),
    by: known(groupings, one(q.by)),
    lock: one(q.lock) === '1',
    reference: one(q.reference),
    ideal: one(q.ideal) === '1',
    coded: one(q.coded) === '1',
    published: one(q.published) !== '0',
    radios: strings(q.radio),
    topologies: strings(q.place),
    sizes: strings(q.size),
    settings: strings(q.setting),
    hidden: strings(q.hide),
    sort: one(q.sort),
    axis: one(q.axis),
    metric: one(q.metric),
    run: one(q.run),
    iteration: count(q.iteration),
    verdict: one(q.verdict),
    page: count(q.page),
  }
}

/** Only what differs from the plain view is in the query: links stay short. */
export function writeView(v: View): LocationQueryRaw {
  const out: LocationQueryRaw = {}
  const put = (key: string, value: string | string[]) => {
    if (value.length) out[key] = value
  }
  put('ids', v.ids)
  put('choose', v.choose ? '1' : '')
  put('find', v.find)
  put('tab', v.tab === tabs[0].name ? '' : v.tab)
  put('by', v.by === groupings[0].name ? '' : v.by)
  put('lock', v.lock ? '1' : '')
  put('reference', v.reference)
  put('ideal', v.ideal ? '1' : '')
  put('coded', v.coded ? '1' : '')
  put('published', v.published ? '' : '0')
  put('radio', v.radios)
  put('place', v.topologies)
  put('size', v.sizes)
  put('setting', v.settings)
  put('hide', v.hidden)
  put('sort', v.sort)
  put('axis', v.axis)
  put('metric', v.metric)
  put('run', v.run)
  put('iteration', v.iteration ? String(v.iteration) : '')
  put('verdict', v.verdict)
  put('page', v.page ? String(v.page) : '')
  return out
}
