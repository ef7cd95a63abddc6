// A radio profile as the orchestrator writes it, and its emulation for people.
import type { Attach } from './attach'
import { percent } from './number'
import { bitrate, exact, exactBytes, seconds } from './format'

export interface Parameter {
  name: string
  value: number
  unit: string
  source: string
  uncertain?: boolean
  unknown?: boolean
}
export interface Channel {
  model: string
  loss?: number
  good_to_bad?: number
  bad_to_good?: number
  loss_good?: number
  loss_bad?: number
  alpha?: number
  beta?: number
  slot_ns?: number
  on_off?: { period_min_ns: number; period_max_ns: number; on_factor: number; off_factor: number }
  hidden_markov?: { transition: number[][]; bit_error_rates: number[] }
  outages?: { times?: { start_ns: number; end_ns: number }[]; period_ns?: number; length_ns?: number; loss: number }
  parts?: Channel[]
}
export interface Emulation {
  medium: string
  rate_bits_per_second: number
  processing_delay_ns: number
  turnaround_ns?: number
  reordering?: { share: number; delay_ns: number }
  duplication?: { share: number }
  frame_overhead_bytes?: number
  mtu_bytes: number
  queue: {
    bytes?: number
    packets?: number
    red?: { min_bytes: number; max_bytes: number; max_probability: number; ecn?: boolean }
  }
  channel: Channel
  reverse_channel?: Channel
  framing?: { frame_bytes: number; header_bytes: number }
  fec?: {
    code: string
    code_rate: number
    block_symbols?: number
    data_symbols?: number
    interleaving_depth?: number
    residual_ber?: number
  }
  arq?: { nack_timer_frames: number; persistence: number; in_order: boolean }
  access?: {
    tdma?: { slot_ns: number; guard_ns?: number; owners: string[] }
    csma?: { difs_ns: number; slot_ns: number; window_min: number; window_max: number; retries: number }
  }
  sites?: Record<string, { rate_bits_per_second?: number; channel?: Channel }>
}
export interface Profile {
  name: string
  title: string
  manufacturer: string
  model: string
  firmware?: string
  waveform: string
  figures: Parameter[]
  notes?: string[]
  attach?: Attach
  emulation?: Emulation
  hash: string
}

const ns = (x: number | undefined) => seconds((x ?? 0) / 1e9)

export function channelText(c: Channel): string {
  switch (c.model) {
    case 'perfect':
      return 'loses nothing'
    case 'uniform':
      return `loses packets independently, ${percent(c.loss, 2)}`
    case 'gilbert-elliott':
      return `Gilbert–Elliott${c.slot_ns ? ` in slots of ${ns(c.slot_ns)}` : ''}: good→bad ${c.good_to_bad}, bad→good ${c.bad_to_good}, loss ${percent(c.loss_good ?? 0, 2)} in the good state and ${percent(c.loss_bad ?? 0, 1)} in the bad one`
    case 'markov':
      return `two-state Markov chain: α ${c.alpha}, β ${c.beta}; ${percent((c.alpha ?? 0) / ((c.alpha ?? 0) + (c.beta ?? 1)), 2)} of the slots bad`
    case 'on-off':
      return `ON and OFF periods of ${ns(c.on_off?.period_min_ns)} to ${ns(c.on_off?.period_max_ns)}, mean loss ${percent(c.loss, 1)}`
    case 'hidden-markov':
      return `hidden Markov bit errors, ${c.hidden_markov?.transition.length} states with bit error rates ${c.hidden_markov?.bit_error_rates.map((b) => b.toExponential(1)).join(', ')}`
    case 'outages':
      return c.outages?.period_ns
        ? `outages of ${ns(c.outages.length_ns)} every ${ns(c.outages.period_ns)}`
        : `${c.outages?.times?.length ?? 0} outages at stated times`
    case 'trace':
      return 'follows a recorded trace of rate, delay and loss'
    case 'mobility':
      return 'follows the distance between the stations'
    case 'combined':
      return (c.parts ?? []).map(channelText).join('; and ')
  }
  return c.model
}

/** The emulation as rows for people: what, and how. */
export function emulationRows(e: Emulation): [string, string][] {
  const rows: [string, string][] = [
    [
      'Medium',
      {
        shared: 'shared: one transmission at a time among all radios',
        'half-duplex': 'half duplex: both directions of a link share its rate',
        'full-duplex': 'full duplex',
      }[e.medium] ?? e.medium,
    ],
    ['Rate on the air', bitrate(e.rate_bits_per_second)],
    ['Processing delay', `${ns(e.processing_delay_ns)} a hop`],
    ['MTU', exactBytes(e.mtu_bytes)],
    ['Queue', queueText(e)],
    ['Channel', channelText(e.channel)],
  ]
  if (e.reverse_channel) rows.push(['Channel back', channelText(e.reverse_channel)])
  if (e.frame_overhead_bytes) rows.push(['Overhead', `${exactBytes(e.frame_overhead_bytes)} a packet`])
  if (e.turnaround_ns) rows.push(['Turnaround', ns(e.turnaround_ns)])
  if (e.framing)
    rows.push(['Frames', `${exactBytes(e.framing.frame_bytes)}, ${exactBytes(e.framing.header_bytes)} of them header`])
  if (e.fec)
    rows.push([
      'FEC',
      `${e.fec.code}${e.fec.block_symbols ? ` (${e.fec.block_symbols}, ${e.fec.data_symbols})` : ''}, rate ${Number(e.fec.code_rate.toFixed(3))}${e.fec.interleaving_depth ? `, interleaving ${e.fec.interleaving_depth}` : ''}${e.fec.residual_ber ? `, ${e.fec.residual_ber} left` : ''}`,
    ])
  if (e.arq)
    rows.push([
      'ARQ',
      `selective repeat, NACK after ${e.arq.nack_timer_frames} frames, persistence ${e.arq.persistence}, ${e.arq.in_order ? 'in order' : 'as they come'}`,
    ])
  if (e.reordering)
    rows.push([
      'Reordering',
      `${Number((100 * e.reordering.share).toPrecision(3))} % of the packets are held back for ${ns(e.reordering.delay_ns)} at their destination`,
    ])
  if (e.duplication)
    rows.push([
      'Duplication',
      `${Number((100 * e.duplication.share).toPrecision(3))} % of the packets come out twice at their destination`,
    ])
  if (e.access?.tdma)
    rows.push(['Access', `TDMA, slots of ${ns(e.access.tdma.slot_ns)}: ${e.access.tdma.owners.join(', ')}`])
  if (e.access?.csma)
    rows.push([
      'Access',
      `carrier sense: DIFS ${ns(e.access.csma.difs_ns)}, slot ${ns(e.access.csma.slot_ns)}, window ${e.access.csma.window_min} to ${e.access.csma.window_max}`,
    ])
  for (const [name, site] of Object.entries(e.sites ?? {})) {
    rows.push([
      `At ${name}`,
      [
        site.rate_bits_per_second ? bitrate(site.rate_bits_per_second) : '',
        site.channel ? channelText(site.channel) : '',
      ]
        .filter(Boolean)
        .join('; '),
    ])
  }
  return rows
}

function queueText(e: Emulation): string {
  const q = e.queue
  const size =
    [q.bytes ? exactBytes(q.bytes) : '', q.packets ? `${q.packets} packets` : ''].filter(Boolean).join(', ') ||
    'without bound'
  return q.red
    ? `${size}; RED from ${exactBytes(q.red.min_bytes)} to ${exactBytes(q.red.max_bytes)}, at most ${q.red.max_probability}${q.red.ecn ? ', marks (ECN)' : ''}`
    : `${size}, drop-tail`
}

/** Parameters of the emulation are apart from those of the radio itself. */
export const ofEmulation = (f: Parameter) => f.name.startsWith('emulation.')

/** "channel_bandwidth" → "channel bandwidth", "emulation.sites.k-lot.rate" → "rate at k-lot". */
export function parameterName(name: string): string {
  const site = /^emulation\.sites\.([^.]+)\.(.*)$/.exec(name)
  return (site ? `${site[2]} at ${site[1]}` : name.replace(/^emulation\./, '')).replaceAll('_', ' ')
}

export function parameterValue(f: Parameter): string {
  if (f.unknown) return 'not known'
  if (f.unit === 'bit/s') return bitrate(f.value)
  if (f.unit === 'B') return exactBytes(f.value)
  return `${exact(f.value)} ${f.unit}`.trim()
}
