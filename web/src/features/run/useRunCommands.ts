// Commands of people to runs, and what came of giving them.
import { useQueryClient } from '@tanstack/vue-query'
import { ref, type Ref } from 'vue'
import { toast } from '@/composables/toasts'
import { control, explain, operator } from '@/lib/api'
import { myName, recordName } from '@/features/access/session'

export function useRunCommands(campaign: Ref<string>) {
  const queries = useQueryClient()
  /** The command that is being sent. */
  const busy = ref('')

  /** Sends a command; throws what the orchestrator answers where it refuses it. */
  async function send(name: string, done: string, call: () => Promise<unknown>): Promise<void> {
    busy.value = name
    try {
      await call()
      toast.success(done)
      void queries.invalidateQueries({ queryKey: ['run', campaign.value] })
    } finally {
      busy.value = ''
    }
  }
  /** Sends a command of a button, which has no place of its own for an error. */
  const press = (name: string, done: string, call: () => Promise<unknown>): Promise<void> =>
    send(name, done, call).catch((e) => toast.error(explain(e)))
  const by = () => myName.value || recordName.value.trim()
  return {
    busy,
    pause: (runId: string) =>
      press('pause', 'The run pauses after the current trial.', () => control.pauseRun({ runId, by: by() })),
    resume: (runId: string) => press('resume', 'The run resumes.', () => control.resumeRun({ runId, by: by() })),
    continue: (runId: string) =>
      press('continue', 'The run continues.', () => control.continueRun({ runId, by: by() })),
    skip: (runId: string, trial: number) =>
      press('skip', 'The trial will be skipped.', () => control.skipTrial({ runId, trial, by: by() })),
    repeat: (runId: string, trial: number) =>
      press('repeat', 'The trial will be repeated.', () => control.repeatTrial({ runId, trial, by: by() })),
    include: (runId: string, trial: number, attempt: number) =>
      press('include', 'The attempt counts again.', () => control.includeAttempt({ runId, trial, attempt, by: by() })),
    // Dialogs give these: they show the error themselves.
    exclude: (runId: string, trial: number, attempt: number, reason: string) =>
      send('exclude', 'The attempt is excluded from results. It stays visible.', () =>
        control.excludeAttempt({ runId, trial, attempt, reason, by: by() }),
      ),
    abortRun: (runId: string, reason: string) =>
      send('abort', 'The run is being aborted.', () => control.abortRun({ runId, reason, by: by() })),
    abortCampaign: (reason: string) =>
      send('abort', 'The campaign is being aborted.', () =>
        operator.abortCampaign({
          campaignId: campaign.value,
          reason: [reason, by() && `by ${by()}`].filter(Boolean).join(', '),
        }),
      ),
  }
}
export type RunCommands = ReturnType<typeof useRunCommands>
