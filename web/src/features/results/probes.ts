// What the table of probes shows.
import { decimal, NOTHING, percent } from '@/lib/number'
import { ofAll } from '@/lib/format'
import type { MessagesSummary, ProbeSummary } from '@/gen/linktrial/v1/result_pb'

export interface ProbeColumn {
  name: string
  title: string
  hint: string
}

const all: ProbeColumn[] = [
  { name: 'n', title: 'n', hint: 'trials with values, of those planned' },
  { name: 'delayMin', title: 'Min', hint: 'least one-way delay, ms' },
  { name: 'delayMean', title: 'Mean', hint: 'mean one-way delay, ms' },
  { name: 'delayP50', title: '50 %', hint: 'median one-way delay, ms' },
  { name: 'delayP95', title: '95 %', hint: '95th percentile of the one-way delay, ms' },
  { name: 'delayP99', title: '99 %', hint: '99th percentile of the one-way delay, ms' },
  { name: 'delayMax', title: 'Max', hint: 'longest one-way delay, ms' },
  { name: 'jitter', title: 'Jitter', hint: 'RFC 3550, section 6.4.1: mean of the estimate, ms' },
  { name: 'loss', title: 'Loss', hint: 'share of the packets that did not arrive' },
  { name: 'burst', title: 'Burst', hint: 'longest run of lost packets' },
  { name: 'reordered', title: 'Reord.', hint: 'packets that arrived after one with a higher number (RFC 4737)' },
  { name: 'duplicated', title: 'Dup.', hint: 'further arrivals of one packet' },
]

const mos: ProbeColumn = {
  name: 'mos',
  title: 'MOS',
  hint: 'quality of voice by the E-model (ITU-T G.107), 1 to 4.4, with the fixed de-jitter buffer that suits the delays best',
}

/** The columns of several trials, or of a single attempt; that of voice where a probe was speech. */
export function probeColumns(probes: ProbeSummary[], single?: boolean): ProbeColumn[] {
  const columns = single ? all.slice(1) : all
  return probes.some((p) => p.mos !== undefined) ? [...columns, mos] : columns
}

const searched: ProbeColumn[] = [
  { name: 'n', title: 'n', hint: 'trials that found a capacity, of those planned' },
  { name: 'maximum', title: 'Capacity', hint: 'most IP packets received in a sub-interval (RFC 9097), kbit/s' },
  { name: 'mean', title: 'Mean', hint: 'received over the whole time at the rate found, kbit/s' },
  { name: 'payload', title: 'Payload', hint: 'of the capacity, payload of UDP, kbit/s' },
  { name: 'bottleneck', title: 'Bottleneck', hint: 'by the times between arrivals of packets that waited, kbit/s' },
  { name: 'loss', title: 'Loss', hint: 'share of the packets at the rate found that did not arrive' },
  { name: 'delayMin', title: 'Delay min', hint: 'least one-way delay of all packets, ms' },
  { name: 'delayMean', title: 'Mean', hint: 'mean one-way delay at the rate found, ms' },
  { name: 'delayP95', title: '95 %', hint: '95th percentile of the one-way delay at the rate found, ms' },
  { name: 'packet', title: 'Packet', hint: 'length of the packets with the headers of IP and UDP, bytes' },
  { name: 'largest', title: 'Largest', hint: 'largest payload of UDP that passes without fragments, bytes' },
]

/** The columns of searches for the capacity. */
export const capacityColumns = (single?: boolean) => (single ? searched.slice(1) : searched)

const kilobits = (bps: number | undefined) => (bps === undefined ? NOTHING : decimal(bps / 1e3, 2))

export function capacityCell(p: ProbeSummary, column: string): string {
  const c = p.capacity
  if (!c) return NOTHING
  switch (column) {
    case 'n':
      return ofAll(c.measured, p.planned)
    case 'maximum':
      return kilobits(c.maximum)
    case 'mean':
      return kilobits(c.mean)
    case 'payload':
      return kilobits(c.payload)
    case 'bottleneck':
      return kilobits(c.bottleneck)
    case 'loss':
      return percent(c.lossShare, 2)
    case 'delayMin':
      return ms(p.delayMin)
    case 'delayMean':
      return ms(c.delayMean)
    case 'delayP95':
      return ms(c.delayP95)
    case 'packet':
      return decimal(c.packetBytes, 0)
    case 'largest':
      return c.largestPayload ? String(c.largestPayload) : NOTHING
  }
  return ''
}

/** What a reader must know of a capacity. */
export function capacityCaveats(p: ProbeSummary): string[] {
  const out: string[] = []
  if (p.capacity?.unfinished)
    out.push(
      `${p.capacity.unfinished} of ${p.capacity.measured}: the time was up before it was known to 1 %, it may be higher`,
    )
  if (p.capacity?.highest)
    out.push(`${p.capacity.highest} of ${p.capacity.measured}: the highest rate was not too much, it may be higher`)
  return out
}

/** The columns of messages. */
export const messageColumns: ProbeColumn[] = [
  { name: 'bytes', title: 'Bytes', hint: 'payload of UDP of one message' },
  { name: 'packets', title: 'Packets', hint: 'of one message, which leave at once' },
  { name: 'sent', title: 'Sent', hint: 'messages of which all packets were sent' },
  { name: 'delivered', title: 'Delivered', hint: 'messages of which all packets arrived; none is sent again' },
  { name: 'share', title: 'Share', hint: 'share delivered' },
  { name: 'interval', title: '95 % interval', hint: "of the share: Wilson's, as if losses were independent" },
  { name: 'timeMin', title: 'Min', hint: "least time from the first packet's sending to the last one's arrival, ms" },
  { name: 'timeP50', title: '50 %', hint: 'median of that time, ms' },
  { name: 'timeP95', title: '95 %', hint: '95th percentile of that time, ms' },
  { name: 'timeMax', title: 'Max', hint: 'longest time, ms' },
]

export function messageCell(m: MessagesSummary, column: string): string {
  switch (column) {
    case 'bytes':
      return String(m.bytes)
    case 'packets':
      return String(m.packets)
    case 'sent':
      return String(m.sent)
    case 'delivered':
      return String(m.delivered)
    case 'share':
      return m.sent ? percent(Number(m.delivered) / Number(m.sent), 2) : NOTHING
    case 'interval':
      return m.shareLow === undefined || m.shareHigh === undefined
        ? NOTHING
        : `${percent(m.shareLow, 1)} to ${percent(m.shareHigh, 1)}`
    case 'timeMin':
      return ms(m.timeMin)
    case 'timeP50':
      return ms(m.timeP50)
    case 'timeP95':
      return ms(m.timeP95)
    case 'timeMax':
      return ms(m.timeMax)
  }
  return ''
}

/** A row's name: the probe, and what ran beside it. */
export const probeName = (p: ProbeSummary) => (p.beside ? `${p.label} beside ${p.beside}` : `${p.label}, alone`)

/** What the congestion control of a probe's protocol did not let go. */
export const probeUnsent = (p: ProbeSummary) =>
  `${p.unsent} of ${p.sent + p.unsent} packets not sent: its congestion control did not let them go`

const ms = (s: number | undefined) => (s === undefined ? NOTHING : decimal(s * 1e3, 1))

export function probeCell(p: ProbeSummary, column: string): string {
  switch (column) {
    case 'n':
      return ofAll(p.measured, p.planned)
    case 'loss':
      return percent(p.lossShare, 2)
    case 'burst':
      return p.sent ? String(p.longestLossBurst) : NOTHING
    case 'reordered':
      return p.sent ? String(p.reordered) : NOTHING
    case 'duplicated':
      return p.sent ? String(p.duplicated) : NOTHING
    case 'delayMin':
      return ms(p.delayMin)
    case 'delayMean':
      return ms(p.delayMean)
    case 'delayP50':
      return ms(p.delayP50)
    case 'delayP95':
      return ms(p.delayP95)
    case 'delayP99':
      return ms(p.delayP99)
    case 'delayMax':
      return ms(p.delayMax)
    case 'jitter':
      return ms(p.jitter)
    case 'mos':
      return p.mos === undefined ? NOTHING : decimal(p.mos, 2)
  }
  return ''
}
