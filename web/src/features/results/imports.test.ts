import { create } from '@bufbuild/protobuf'
import { expect, it } from 'vitest'
import { CampaignSchema, ImportedCampaignSchema, ImportOriginSchema } from '@/gen/linktrial/v1/result_pb'
import { choicesOf, importProblem, maxImportBytes, originText } from './imports'

const at = (seconds: number) => ({ seconds: BigInt(seconds), nanos: 0 })

it('says where imported results come from', () => {
  const o = create(ImportOriginSchema, { fileName: 'results.json', at: at(1777624200) })
  expect(originText(o)).toBe('imported from results.json, 2026-05-01 08:30:00 UTC')
  expect(originText(create(ImportOriginSchema, { ...o, origin: 'company B', by: 'ada' }))).toBe(
    'imported from results.json of company B by ada, 2026-05-01 08:30:00 UTC',
  )
})

it('lists imported campaigns among one’s own, the newest first', () => {
  const own = [5, 1].map((s) => create(CampaignSchema, { id: `own${s}`, created: at(s) }))
  const imported = create(ImportedCampaignSchema, {
    imported: { campaignId: 'their4xq' },
    created: at(3),
    runs: 2,
    trials: 30,
    radios: ['mpu4'],
  })
  const all = choicesOf(own, [imported])
  expect(all.map((c) => c.campaign.id)).toEqual(['own5', 'their4xq', 'own1'])
  expect(all.map((c) => !!c.imported)).toEqual([false, true, false])
  expect(all[1]!.campaign).toMatchObject({ runs: 2, trialsEnded: 30, radios: ['mpu4'] })
})

it('knows files that cannot be exports', () => {
  expect(importProblem('results.json', 900)).toBe('')
  expect(importProblem('Their Results.JSON', maxImportBytes)).toBe('')
  for (const [name, size, problem] of [
    ['results.csv', 1, 'no JSON export'],
    ['results.json', 0, 'is empty'],
    ['results.json', maxImportBytes + 1, 'larger than 64 MiB'],
  ] as const)
    expect(importProblem(name, size)).toContain(problem)
})
