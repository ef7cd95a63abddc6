// The files that the orchestrator exports of results.
import type { Format, RunSummary } from '@/gen/linktrial/v1/result_pb'
import { operator, results } from '@/lib/api'
import { saveFile, saveFrom } from '@/lib/save'
import { commonTitle } from './model'

/**
 * What there is to save of a choice, in the orchestrator's words: reports, or files of data. Pictures are
 * saved where they are shown.
 */
export async function formatsOf(choice: ExportChoice, documents: boolean): Promise<Format[]> {
  const { formats } = await results.listFormats({ ids: choice.ids })
  return formats.filter((f) => f.document === documents && !f.drawing)
}

/** What a file is made of: runs and campaigns, and the words that name it. */
export interface ExportChoice {
  key: string
  label: string
  ids: string[]
  /** Campaigns, radios and topologies. */
  words: string[]
  /** Runs of other orchestrators, of which there are no rows of samples, channels and readings. */
  imported?: boolean
  /** Treatments that the file does not have, by their names, and what they are called. */
  leaveOut: { name: string; label: string }[]
}

/** First what the page shows, then whole campaigns, then single runs. */
export function exportChoices(of: {
  all: RunSummary[]
  /** Those that pass the page's filters. */
  shown: RunSummary[]
  hidden: string[]
  /** Of the page's address: campaigns and runs. */
  ids: string[]
  marks: Map<string, string>
  nameOf: (r: RunSummary) => string
}): ExportChoice[] {
  const { all, shown, marks } = of
  const choice = (key: string, label: string, runs: RunSummary[], ids: string[], hidden: string[] = []) => {
    const treatments = new Map(runs.flatMap((r) => r.treatments.map((t) => [t.name, t.label || t.name] as const)))
    const leaveOut = [...treatments].filter(([name]) => hidden.includes(name)).map(([name, label]) => ({ name, label }))
    const words = exportWords(
      runs.map(of.nameOf),
      runs.map((r) => r.run?.radio ?? ''),
      runs.map((r) => r.run?.topology ?? ''),
      leaveOut.map((t) => t.name),
    )
    return { key, label, ids, words, imported: runs.some((r) => r.imported), leaveOut }
  }
  const idsOf = (runs: RunSummary[]) => runs.map((r) => r.run?.id ?? '')
  const out: ExportChoice[] = []
  const filtered = shown.length > 0 && shown.length < all.length
  const several = marks.size > 1 || all.length === 1 || of.ids.some((id) => !marks.has(id))
  if (filtered || several || of.hidden.length) {
    const runs = filtered ? shown : all
    let label = filtered ? `the ${runs.length} runs that are shown` : 'all that is shown'
    if (runs.length === 1) label = filtered ? 'the run that is shown' : 'this run'
    const first = choice('shown', label, runs, filtered ? idsOf(runs) : of.ids, of.hidden)
    if (first.leaveOut.length)
      first.label += `, without ${first.leaveOut.length === 1 ? 'the hidden treatment' : `${first.leaveOut.length} hidden treatments`}`
    if (filtered || several || first.leaveOut.length) out.push(first)
  }
  for (const [id, mark] of marks) {
    const mine = all.filter((r) => r.run?.campaignId === id)
    const name = `${mark ? `${mark}: ` : ''}${mine[0] ? of.nameOf(mine[0]) : id}, whole campaign`
    out.push(choice(id, name, mine, [id]))
  }
  if (all.length > 1 && all.length <= 200)
    for (const r of all)
      out.push(
        choice(
          r.run?.id ?? '',
          `${marks.get(r.run?.campaignId ?? '') || ''} ${commonTitle([r])}`.trim(),
          [r],
          idsOf([r]),
        ),
      )
  return out
}

/** What an orchestrator's file is called where many are in one folder: of what it is, then its own name. */
export function exportName(words: string[], served: string): string {
  const stem = words
    .join(' ')
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-+|-+$/g, '')
    .slice(0, 100)
  return stem ? `${stem}-${served}` : served
}

/** The words for these runs; more than two radios, topologies or treatments that are left out are counted. */
export function exportWords(
  campaigns: string[],
  radios: string[],
  topologies: string[],
  leftOut: string[] = [],
): string[] {
  const few = (names: string[], what: string) => {
    const all = [...new Set(names)]
    return all.length > 2 ? [`${all.length} ${what}`] : all
  }
  return [
    ...few(campaigns, 'campaigns'),
    ...few(radios, 'radios'),
    ...few(topologies, 'topologies'),
    ...(leftOut.length ? ['without', ...few(leftOut, 'treatments')] : []),
  ]
}

/** Where the browser saves a file from. */
export function downloadAddress(choice: ExportChoice, format: string, reference: string): string {
  const q = new URLSearchParams({ format })
  for (const id of choice.ids) q.append('id', id)
  if (reference) q.set('reference', reference)
  for (const t of choice.leaveOut) q.append('leave-out', t.name)
  const stem = exportName(choice.words, '').replace(/-+$/, '')
  if (stem) q.set('stem', stem)
  return `/download?${q}`
}

/** Saves a file of results. It resolves once the file is there, or the browser has taken it over. */
export async function saveExport(choice: ExportChoice, f: Format, reference: string): Promise<void> {
  const [runId, ...moreIds] = choice.ids
  let name = ''
  let type = ''
  const content: BlobPart[] = []
  const call = new AbortController()
  const leaveOut = choice.leaveOut.map((t) => t.name)
  const parts = operator.results({ runId, moreIds, format: f.name, reference, leaveOut }, { signal: call.signal })
  for await (const part of parts) {
    if (part.fileName) {
      if (f.rows) {
        // It may be larger than a browser's memory: the browser writes it to disk as it arrives.
        // The orchestrator has accepted the request: a browser would tell no reason why not.
        call.abort()
        return saveFrom(downloadAddress(choice, f.name, reference))
      }
      name = exportName(choice.words, part.fileName)
      type = part.mediaType
    }
    content.push(new Uint8Array(part.content))
  }
  saveFile(name, new Blob(content, { type }))
}
