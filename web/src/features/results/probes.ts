// What the table of probes shows.
import { decimal, NOTHING, percent } from '@/lib/number'
import { ofAll } from '@/lib/format'
import type { ProbeSummary } from '@/gen/linktrial/v1/result_pb'

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

/** The columns of several trials, or of a single attempt. */
export const probeColumns = (single?: boolean) => (single ? all.slice(1) : all)

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
  }
  return ''
}
