// What needs somebody, worst first. Pure.
import type { ScheduledPlan } from '@/gen/linktrial/v1/library_pb'
import { RunState, type Node, type NodeBounds, type Run } from '@/gen/linktrial/v1/operator_pb'
import type { Campaign } from '@/gen/linktrial/v1/result_pb'
import { wholePercent } from '@/lib/number'
import { bytes, date, seconds, sentence, moment, wholeSeconds } from '@/lib/format'

export interface Trouble {
  key: string
  tone: 'bad' | 'warn'
  /** What is wrong, a sentence. */
  title: string
  /** What that means, or what to do: sentences. */
  text: string
  to: string
  /** What the link opens. */
  link: string
}

/** An idle node that was in contact so recently is missed; before that it was switched off. */
const missedMs = 3_600_000
/** A campaign that a fault stopped, and a scheduled start that failed, are shown so long. */
const failedMs = 24 * 3_600_000
/** A start may take a moment after its time. */
const dueMs = 15_000

export interface Known {
  runs: readonly Run[]
  nodes: readonly Node[]
  /** Of the preflight's checks of a node; without them nothing of it is judged by a bound. */
  bounds?: NodeBounds
  schedules: readonly ScheduledPlan[]
  campaigns?: readonly Campaign[]
}

export function troubles(k: Known, now: Date): Trouble[] {
  const all = [
    ...lost(k, now),
    ...k.nodes.flatMap((n) => ofNode(n, k.bounds)),
    ...paused(k.runs),
    ...stopped(k.campaigns ?? [], now),
    ...starts(k.schedules, now),
  ]
  return [...all.filter((t) => t.tone === 'bad'), ...all.filter((t) => t.tone === 'warn')]
}

function lost({ runs, nodes }: Known, now: Date): Trouble[] {
  const out: Trouble[] = []
  const named = new Set<string>()
  for (const r of runs) {
    for (const n of r.noContact) {
      named.add(n.node)
      const since = date(n.since)!
      out.push({
        key: `lost ${r.id} ${n.node}`,
        tone: 'bad',
        title: `No contact with ${n.node} since ${moment(since, now)}, ${wholeSeconds((now.getTime() - since.getTime()) / 1000)}.`,
        text: `It takes part in ${r.plan}. Whether the run continues there is not known; records that the node keeps arrive when contact is back.`,
        to: `/runs/${r.campaignId}`,
        link: 'Open run',
      })
    }
  }
  for (const n of nodes) {
    const last = date(n.lastContact)
    if (n.connected || n.virtual || n.emulated || n.runId || named.has(n.name) || !last) continue
    const ms = now.getTime() - last.getTime()
    if (ms < missedMs)
      out.push({
        key: `away ${n.name}`,
        tone: 'warn',
        title: `No contact with ${n.name} since ${moment(last, now)}, ${wholeSeconds(ms / 1000)}.`,
        text: 'It takes part in no run.',
        to: '/fleet',
        link: 'Open fleet',
      })
  }
  return out
}

function ofNode(n: Node, bounds?: NodeBounds): Trouble[] {
  const at = (kind: string, tone: Trouble['tone'], title: string, text: string): Trouble => ({
    key: `${kind} ${n.name}`,
    tone,
    title,
    text,
    to: '/fleet',
    link: 'Open fleet',
  })
  const out = n.faults.map((f, i) => at(`fault ${i}`, 'bad', `${n.name}: ${f.replace(/\.$/, '')}.`, ''))
  if (!n.connected || n.virtual || !bounds) return out
  if (n.battery !== undefined && n.discharging && n.battery < bounds.enoughCharge)
    out.push(
      at(
        'battery',
        n.battery < bounds.lowCharge ? 'bad' : 'warn',
        `Battery of ${n.name} at ${wholePercent(n.battery)}, discharging.`,
        'Connect the node to a supply, or change its battery.',
      ),
    )
  const off = Math.abs(n.clockOffsetSeconds)
  if (n.clockOffsetKnown && off > bounds.clockSeconds)
    out.push(
      at(
        'clock',
        'warn',
        `Clock of ${n.name} is ${seconds(off)} ${n.clockOffsetSeconds > 0 ? 'behind' : 'ahead of'} the orchestrator’s.`,
        `Expected within ${seconds(bounds.clockSeconds)}: times of different nodes in one chart do not fit together.`,
      ),
    )
  if (n.diskFreeBytes > 0n && n.diskFreeBytes < bounds.enoughDiskBytes)
    out.push(
      at(
        'disk',
        'warn',
        `${n.name} has ${bytes(n.diskFreeBytes)} of disk free.`,
        `Journals need at least ${bytes(bounds.enoughDiskBytes)}.`,
      ),
    )
  return out
}

function paused(runs: readonly Run[]): Trouble[] {
  return runs
    .filter((r) => r.paused && !r.pausing && !r.virtual)
    .map((r) => ({
      key: `paused ${r.id}`,
      tone: r.pauseReason ? 'bad' : 'warn',
      title: r.pauseReason ? `The leading node paused ${r.plan}.` : `${r.plan} is paused.`,
      text: r.pauseReason ? sentence(r.pauseReason) : 'A command paused it: it waits for Resume.',
      to: `/runs/${r.campaignId}`,
      link: 'Open run',
    }))
}

function stopped(campaigns: readonly Campaign[], now: Date): Trouble[] {
  return campaigns.flatMap((c) => {
    const at = date(c.ended)
    if (c.endedAs !== RunState.STOPPED || !at || now.getTime() - at.getTime() > failedMs) return []
    return {
      key: `stopped ${c.id}`,
      tone: 'bad',
      title: `${c.name || c.plan} was stopped at ${moment(at, now)}.`,
      text: c.message ? sentence(c.message) : 'A fault of a node ended it.',
      to: `/runs/${c.id}`,
      link: 'Open run',
    }
  })
}

function starts(schedules: readonly ScheduledPlan[], now: Date): Trouble[] {
  const out: Trouble[] = []
  for (const s of schedules) {
    const at = date(s.at)
    if (!at) continue
    const after = now.getTime() - at.getTime()
    const base = { key: `start ${s.id}`, tone: 'bad' as const, to: '/plans', link: 'Open scheduled starts' }
    const what = `${s.name || s.plan}, scheduled for ${moment(at, now)},`
    if ((s.state === 'failed' || s.state === 'missed') && after < failedMs)
      out.push({ ...base, title: `${what} did not start.`, text: sentence(firstOf(s.message)) })
    else if (s.state === 'skipped' && after < failedMs)
      out.push({ ...base, tone: 'warn', title: `${what} was skipped.`, text: sentence(s.message) })
    else if (s.state === 'waiting' && after > dueMs)
      out.push({
        ...base,
        title: `${what} has not started yet.`,
        text: `Its time passed ${wholeSeconds(after / 1000)} ago.${s.message ? ` ${sentence(firstOf(s.message))}` : ''}`,
      })
  }
  return out
}

/** The first of a start's problems, and how many there are besides. */
function firstOf(message: string): string {
  const [first = '', ...more] = message.split('\n').filter(Boolean)
  return more.length ? `${first}, and ${more.length === 1 ? '1 more problem' : `${more.length} more problems`}` : first
}
