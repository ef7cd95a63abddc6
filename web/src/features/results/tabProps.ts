// What every tab of the results page gets.
import type { LegendItem } from '@/features/results/figures/parts'
import type { View } from './view'
import type { RunSummary } from '@/gen/linktrial/v1/result_pb'
import type { Look } from '@/lib/palette'

export interface TabProps {
  view: View
  /** Those that pass the filters. */
  runs: RunSummary[]
  marks: Map<string, string>
  looks: Map<string, Look>
  /** Of the treatments that are not hidden. */
  legend: LegendItem[]
  /** Campaign, runs, n, place: for what is downloaded. */
  caption: string
  /** The plan or plans, for titles. */
  name: string
}
