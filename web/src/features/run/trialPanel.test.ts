import { create } from '@bufbuild/protobuf'
import { mount } from '@vue/test-utils'
import { expect, it } from 'vitest'
import { ref } from 'vue'
import { AttemptRowSchema, RunSchema, RunState } from '@/gen/linktrial/v1/operator_pb'
import type { Trial, WatchedRun } from './campaignStore'
import type { RunCommands } from './useRunCommands'
import TrialPanel from './TrialPanel.vue'

/** The panel of a trial of a running run, with what became of it. */
function panel(attempts: { attempt: number; verdict: string; reason?: string }[]) {
  const run = create(RunSchema, { id: 'r', state: RunState.RUNNING })
  const watched = { run, at: 0, trials: new Map(), commands: new Map(), silent: new Map() } as WatchedRun
  const trial: Trial = {
    trial: 3,
    iteration: 2,
    treatment: 'a',
    attempts: new Map(attempts.map((a) => [a.attempt, create(AttemptRowSchema, a)])),
  }
  const commands = { busy: ref('') } as unknown as RunCommands
  const RoleButton = { template: '<button><slot /></button>' }
  return mount(TrialPanel, {
    props: { run: watched, trial, label: 'A', commands },
    global: { stubs: { RoleButton, RouterLink: true, ReasonDialog: true, TimeText: true } },
  })
}

it('offers to repeat what was skipped, and not what was not needed', () => {
  const skipped = panel([{ attempt: 0, verdict: 'aborted', reason: 'skipped' }])
  expect(skipped.text()).toContain('skipped before its first attempt')
  expect(skipped.text()).toContain('Repeat')
  const left = panel([{ attempt: 0, verdict: 'aborted', reason: 'not-needed' }])
  expect(left.text()).toContain('not needed: the plan’s rule to stop by ended the trial before its first attempt')
  for (const w of [skipped, left]) expect(w.text()).not.toContain('Attempt 0')
  for (const button of ['Repeat', 'Skip', 'Exclude']) expect(left.text()).not.toContain(button)
})

it('shows the attempts of a trial that was skipped first and repeated then', () => {
  const w = panel([
    { attempt: 0, verdict: 'aborted', reason: 'skipped' },
    { attempt: 1, verdict: 'failed' },
  ])
  expect(w.text()).toContain('Attempt 1:')
  expect(w.text()).not.toContain('before its first attempt')
})
