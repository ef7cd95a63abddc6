// The files that the orchestrator exports of results.
import { operator } from '@/lib/api'
import { saveFile, saveFrom } from '@/lib/save'

export interface ExportFormat {
  format: string
  title: string
  note?: string
  /** It may be larger than a browser's memory: the browser writes it to disk as it arrives. */
  rows?: boolean
}

/** What the orchestrator exports of a campaign or run; the command line has the same (linktrial results --format). */
export const exportFormats: ExportFormat[] = [
  { format: 'csv', title: 'CSV, a row a treatment' },
  { format: 'trials-csv', title: 'CSV, a row an attempt' },
  { format: 'telemetry-csv', title: 'CSV, what radios told during each attempt' },
  { format: 'readings-csv', title: 'CSV, a row a reading of a radio', note: 'can be large', rows: true },
  { format: 'samples-csv', title: 'CSV, a row a sample', note: 'can be large', rows: true },
  { format: 'channels-csv', title: 'CSV, a row a change of a channel', note: 'can be large', rows: true },
  { format: 'probes-csv', title: 'CSV, a row a probe' },
  { format: 'breaches-csv', title: 'CSV, what drivers did wrong' },
  { format: 'json', title: 'JSON' },
  { format: 'latex', title: 'LaTeX table' },
  { format: 'markdown', title: 'Markdown' },
  { format: 'table', title: 'Plain text' },
]

/** What there is of several campaigns beside these. */
export const differenceFormats: ExportFormat[] = [
  { format: 'differences-csv', title: 'CSV, a row a difference of campaigns' },
  { format: 'differences-markdown', title: 'Markdown, differences of campaigns' },
  { format: 'differences', title: 'Plain text, differences of campaigns' },
]

/** What a file is made of: runs and campaigns, and the words that name it. */
export interface ExportChoice {
  key: string
  label: string
  ids: string[]
  /** Campaigns, radios and topologies. */
  words: string[]
  /** Runs of several campaigns, which have differences. */
  several?: boolean
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

/** The words for these runs; more than two radios or topologies are counted. */
export function exportWords(campaigns: string[], radios: string[], topologies: string[]): string[] {
  const few = (names: string[], what: string) => {
    const all = [...new Set(names)]
    return all.length > 2 ? [`${all.length} ${what}`] : all
  }
  return [...few(campaigns, 'campaigns'), ...few(radios, 'radios'), ...few(topologies, 'topologies')]
}

/** Where the browser saves a file from. */
export function downloadAddress(choice: ExportChoice, format: string, reference: string): string {
  const q = new URLSearchParams({ format })
  for (const id of choice.ids) q.append('id', id)
  if (reference) q.set('reference', reference)
  const stem = exportName(choice.words, '').replace(/-+$/, '')
  if (stem) q.set('stem', stem)
  return `/download?${q}`
}

/** Saves a file of results. It resolves once the file is there, or the browser has taken it over. */
export async function saveExport(choice: ExportChoice, f: ExportFormat, reference: string): Promise<void> {
  const [runId, ...moreIds] = choice.ids
  let name = ''
  let type = ''
  const content: BlobPart[] = []
  const call = new AbortController()
  const parts = operator.results({ runId, moreIds, format: f.format, reference }, { signal: call.signal })
  for await (const part of parts) {
    if (part.fileName) {
      if (f.rows) {
        // The orchestrator has accepted the request: a browser would tell no reason why not.
        call.abort()
        return saveFrom(downloadAddress(choice, f.format, reference))
      }
      name = exportName(choice.words, part.fileName)
      type = part.mediaType
    }
    content.push(new Uint8Array(part.content))
  }
  saveFile(name, new Blob(content, { type }))
}
