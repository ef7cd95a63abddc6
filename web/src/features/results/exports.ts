// The files that the orchestrator exports of results.
import { operator } from '@/lib/api'

export interface ExportFormat {
  format: string
  title: string
  note?: string
}

/** What the orchestrator exports of a campaign or run; the command line has the same (linktrial results --format). */
export const exportFormats: ExportFormat[] = [
  { format: 'csv', title: 'CSV, a row a treatment' },
  { format: 'trials-csv', title: 'CSV, a row an attempt' },
  { format: 'telemetry-csv', title: 'CSV, what radios told during each attempt' },
  { format: 'readings-csv', title: 'CSV, a row a reading of a radio', note: 'can be large' },
  { format: 'samples-csv', title: 'CSV, a row a sample', note: 'can be large' },
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
  /** Campaigns, radios and places. */
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

/** The words for these runs; more than two radios or places are counted. */
export function exportWords(campaigns: string[], radios: string[], places: string[]): string[] {
  const few = (names: string[], what: string) => {
    const all = [...new Set(names)]
    return all.length > 2 ? [`${all.length} ${what}`] : all
  }
  return [...few(campaigns, 'campaigns'), ...few(radios, 'radios'), ...few(places, 'places')]
}

export async function exportFile(
  choice: ExportChoice,
  format: string,
  reference: string,
): Promise<{ name: string; content: Blob }> {
  const [runId, ...moreIds] = choice.ids
  const r = await operator.results({ runId, moreIds, format, reference })
  return {
    name: exportName(choice.words, r.fileName),
    content: new Blob([new Uint8Array(r.content)], { type: r.mediaType }),
  }
}
