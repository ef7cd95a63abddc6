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

export async function exportFile(id: string, format: string): Promise<{ name: string; content: Blob }> {
  const r = await operator.results({ runId: id, format })
  return { name: r.fileName, content: new Blob([new Uint8Array(r.content)], { type: r.mediaType }) }
}
