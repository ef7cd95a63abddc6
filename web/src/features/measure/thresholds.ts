// Thresholds of the judgement: as texts in the page's address, checked, and as a request.
import { computed, type Ref } from 'vue'
import { useRoute, useRouter } from 'vue-router'
import type { ThresholdRange } from '@/gen/linktrial/v1/measure_pb'
import { exact } from '@/lib/format'

/** The fields of MeasureThresholds by the keys of ranges. */
const fields = {
  voice_mos: 'voiceMos',
  voice_delay: 'voiceDelayMs',
  chat_loss: 'chatLoss',
  chat_delay: 'chatDelayMs',
  picture: 'pictureBytes',
  picture_time: 'pictureSeconds',
  file: 'fileBytes',
  file_time: 'fileSeconds',
} as const
type Key = keyof typeof fields
export type ThresholdRequest = Partial<Record<(typeof fields)[Key], number>>

/** A row of the form. */
export interface ThresholdRow {
  key: string
  label: string
  text: string // what was entered; empty: the default
  usual: string // the default
  problem: string
}

/** The parameter of the address, which is the flag of the command line, too. */
export const parameterOf = (key: string) => key.replace(/_/g, '-')

/** What is wrong with what was entered; empty: nothing. */
export function problemOf(range: ThresholdRange, text: string): string {
  if (!text) return ''
  const x = /^[0-9]+([.][0-9]+)?$/.test(text) ? Number(text) * range.scale : NaN
  return x >= range.lowest && x <= range.highest
    ? ''
    : `Expected a number of ${range.unit} (${range.bounds}), found “${text}”. The default is used.`
}

export function rowOf(range: ThresholdRange, text: string): ThresholdRow {
  return {
    key: range.key,
    label: `${range.label} (${range.unit})`,
    text,
    usual: exact(range.defaultValue / range.scale),
    problem: problemOf(range, text),
  }
}

/** The thresholds that are set, without those that are wrong. */
export function requestOf(ranges: readonly ThresholdRange[], texts: Record<string, string>): ThresholdRequest {
  const out: ThresholdRequest = {}
  for (const r of ranges) {
    const text = texts[r.key] ?? ''
    const field = fields[r.key as Key]
    if (field && text && !problemOf(r, text)) out[field] = Number(text) * r.scale
  }
  return out
}

/** The thresholds in the page's address. */
export function useThresholds(ranges: Ref<readonly ThresholdRange[]>) {
  const route = useRoute()
  const router = useRouter()
  const texts = computed(() =>
    Object.fromEntries(
      ranges.value.map((r) => [r.key, String([route.query[parameterOf(r.key)]].flat()[0] ?? '').trim()]),
    ),
  )
  const change = (changed: Record<string, string | undefined>) =>
    void router.replace({ query: { ...route.query, ...changed } })
  return {
    rows: computed(() => ranges.value.map((r) => rowOf(r, texts.value[r.key] ?? ''))),
    request: computed(() => requestOf(ranges.value, texts.value)),
    set: (key: string, text: string) => change({ [parameterOf(key)]: text.trim() || undefined }),
    reset: () => change(Object.fromEntries(ranges.value.map((r) => [parameterOf(r.key), undefined]))),
  }
}
