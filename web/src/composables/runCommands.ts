// Orders of people to runs, with what came of giving them.
import { useQueryClient } from '@tanstack/vue-query'
import { useMessage } from 'naive-ui'
import { ref, type Ref } from 'vue'
import { control, explain, operator } from '@/lib/api'
import { myName } from './access'
import { who } from './plan'

export function useRunCommands(campaign: Ref<string>) {
  const queries = useQueryClient()
  const message = useMessage()
  /** The command that is on its way. */
  const busy = ref('')

  async function give(name: string, said: string, call: () => Promise<unknown>): Promise<boolean> {
    busy.value = name
    try {
      await call()
      message.success(said)
      void queries.invalidateQueries({ queryKey: ['run', campaign.value] })
      return true
    } catch (e) {
      message.error(explain(e), { duration: 10_000, closable: true })
      return false
    } finally {
      busy.value = ''
    }
  }
  const by = () => myName.value || who.value.trim()
  return {
    busy,
    pause: (runId: string) =>
      give('pause', 'The run pauses after the trial that runs.', () => control.pauseRun({ runId, by: by() })),
    resume: (runId: string) => give('resume', 'The run goes on.', () => control.resumeRun({ runId, by: by() })),
    abortRun: (runId: string, reason: string) =>
      give('abort', 'The run is being aborted.', () => control.abortRun({ runId, reason, by: by() })),
    abortCampaign: (reason: string) =>
      give('abort', 'The campaign is being aborted.', () =>
        operator.abortCampaign({
          campaignId: campaign.value,
          reason: [reason, by() && `by ${by()}`].filter(Boolean).join(', '),
        }),
      ),
    release: (runId: string) => give('release', 'The run goes on.', () => control.releaseRun({ runId, by: by() })),
    skip: (runId: string, trial: number) =>
      give('skip', 'The trial will be skipped.', () => control.skipTrial({ runId, trial, by: by() })),
    repeat: (runId: string, trial: number) =>
      give('repeat', 'The trial will run once more.', () => control.repeatTrial({ runId, trial, by: by() })),
    mark: (runId: string, trial: number, attempt: number, invalid: boolean, reason: string) =>
      give('mark', invalid ? 'The attempt does not count. It stays visible.' : 'The attempt counts again.', () =>
        control.markAttempt({ runId, trial, attempt, invalid, reason, by: by() }),
      ),
  }
}
export type RunCommands = ReturnType<typeof useRunCommands>
