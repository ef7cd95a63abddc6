// Campaigns that other orchestrators have measured, and that were imported here.
import { create } from '@bufbuild/protobuf'
import { CampaignSchema, type Campaign, type ImportedCampaign, type ImportOrigin } from '@/gen/linktrial/v1/result_pb'
import { utc } from '@/lib/format'
import { importedState } from '@/lib/states'

/** As the orchestrator reads them (orchestrator/report, MaxImport). */
export const maxImportBytes = 64 * 2 ** 20

/** Where the results come from, in the words of the orchestrator's files. */
export const originText = (o: ImportOrigin): string => `${importedState.word} ${fromText(o)}`

/** The same after the word "imported". */
export function fromText(o: ImportOrigin): string {
  const of = o.origin ? ` of ${o.origin}` : ''
  const by = o.by ? ` by ${o.by}` : ''
  return `from ${o.fileName}${of}${by}, ${utc(o.at)}`
}

/** A campaign to choose, measured here or imported. */
export interface Choice {
  campaign: Campaign
  imported?: ImportOrigin
}

function asCampaign(c: ImportedCampaign): Campaign {
  return create(CampaignSchema, {
    id: c.imported?.campaignId,
    plan: c.plan,
    created: c.created,
    ended: c.created,
    runs: c.runs,
    runsEnded: c.runs,
    trials: c.trials,
    trialsEnded: c.trials,
    place: c.place,
    radios: c.radios,
    topologies: c.topologies,
    sizesBytes: c.sizesBytes,
    treatments: c.treatments,
  })
}

/**
 * Own and imported campaigns, the newest first. While older own ones are not read yet, what was
 * imported and is older than the last of them stands at the end.
 */
export function choicesOf(own: Campaign[], imports: ImportedCampaign[]): Choice[] {
  const time = (c: Choice) => Number(c.campaign.created?.seconds ?? 0)
  return [
    ...own.map((campaign): Choice => ({ campaign })),
    ...imports.map((c): Choice => ({ campaign: asCampaign(c), imported: c.imported })),
  ].sort((a, b) => time(b) - time(a))
}

/** Why a file cannot be an export, before it is sent; empty: it can. */
export function importProblem(name: string, size: number): string {
  if (!/\.json$/i.test(name))
    return `${name} is no JSON export: expected a file such as results.json (Results, Download data, JSON).`
  if (!size) return `${name} is empty.`
  if (size > maxImportBytes) return `${name} is larger than ${maxImportBytes / 2 ** 20} MiB, the most that is read.`
  return ''
}
