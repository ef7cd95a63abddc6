// Every state that pages show, in one place: its glyph, its word and its tone.
// Amber (warn) is what people did or have to do; red (bad) is a fault.
import { NodeIdentity_State as Identity } from '@/gen/linktrial/v1/enrol_pb'
import { CheckState } from '@/gen/linktrial/v1/fleet_pb'
import { InterfaceVerdict } from '@/gen/linktrial/v1/interface_pb'
import { RunState, type Run } from '@/gen/linktrial/v1/operator_pb'
import { PointVerdict, RequiredOutcome } from '@/gen/linktrial/v1/result_pb'

export type Tone = 'ok' | 'warn' | 'bad' | 'run' | 'muted'
export interface State {
  glyph: string
  word: string
  tone: Tone
}
const state = (glyph: string, word: string, tone: Tone): State => ({ glyph, word, tone })
const unknown = state('?', 'unknown', 'muted')

const runStates: Record<RunState, State> = {
  [RunState.UNSPECIFIED]: unknown,
  [RunState.QUEUED]: state('…', 'queued', 'muted'),
  [RunState.WAITING]: state('⚑', 'waiting for the nodes to be moved', 'warn'),
  [RunState.PREPARING]: state('◔', 'preparing', 'run'),
  [RunState.RUNNING]: state('▶', 'running', 'run'),
  [RunState.COLLECTING]: state('⇣', 'collecting journals', 'run'),
  [RunState.COMPLETED]: state('✓', 'completed', 'ok'),
  [RunState.ABORTED]: state('■', 'aborted', 'warn'),
  [RunState.STOPPED]: state('✕', 'stopped', 'bad'),
}
const pausing = state('‖', 'pausing', 'warn')
const paused = state('‖', 'paused', 'warn')
const aborting = state('■', 'aborting', 'warn')
const inGuests = state('▶', 'running in virtual time', 'run')
const storing = state('⇣', 'storing', 'run')

type Part = Pick<Run, 'state' | 'virtual' | 'campaignId' | 'guestsEnded'>

/**
 * The trials of a campaign in virtual time are over, and its journals are being stored: they
 * come when all guests have ended, run by run. All is at least the campaign's runs.
 */
export function isStoring(r: Part, all: readonly Part[]): boolean {
  return r.virtual && !ended(r.state) && all.some((x) => x.campaignId === r.campaignId && x.guestsEnded)
}

/**
 * A run pauses at a trial's end: until then it is pausing. It is aborted once its nodes have
 * ended their parts, with in-band control in a window of each: until then it is aborting. In virtual time its state
 * depends on the other runs of its campaign, which all has.
 */
export function runState(
  r: Pick<Run, 'state' | 'paused' | 'pausing'> & Partial<Part & Pick<Run, 'aborting'>>,
  all: readonly Part[] = [],
): State {
  if (r.aborting && !ended(r.state)) return aborting
  if (r.virtual && !ended(r.state)) return isStoring(r as Part, [r as Part, ...all]) ? storing : inGuests
  if (r.state === RunState.RUNNING || r.state === RunState.PREPARING) {
    if (r.pausing) return pausing
    if (r.paused) return paused
  }
  return runStates[r.state] ?? unknown
}

const interfaceStates: Record<InterfaceVerdict, State> = {
  [InterfaceVerdict.UNSPECIFIED]: unknown,
  [InterfaceVerdict.LIKELY]: state('✓', 'likely the radio', 'ok'),
  [InterfaceVerdict.POSSIBLE]: state('○', 'can be the radio', 'muted'),
  [InterfaceVerdict.REFUSED]: state('✕', 'cannot be the radio', 'warn'),
}

/** Whether an interface of a laptop can be the radio's. */
export const interfaceState = (v: InterfaceVerdict): State => interfaceStates[v]

/** What became of a radio that a person set up, or removed. */
export const orderState = (done: boolean): State => (done ? state('✓', 'done', 'ok') : state('✕', 'refused', 'bad'))

/** The run has ended: nothing more happens in it by itself. */
export function ended(s: RunState): boolean {
  return s === RunState.COMPLETED || s === RunState.ABORTED || s === RunState.STOPPED
}

export type TrialKind =
  | 'succeeded'
  | 'failed'
  | 'timed-out'
  | 'aborted'
  | 'skipped'
  | 'not-needed'
  | 'invalid'
  | 'running'
  | 'waiting'
  | 'not-run'
  | 'not-ended'

export const trialStates: Record<TrialKind, State> = {
  succeeded: state('✓', 'succeeded', 'ok'),
  failed: state('✕', 'failed', 'bad'),
  'timed-out': state('◷', 'timed out', 'bad'),
  aborted: state('■', 'aborted', 'warn'),
  skipped: state('»', 'skipped', 'warn'),
  'not-needed': state('◌', 'not needed', 'muted'),
  invalid: state('⊘', 'invalid', 'warn'),
  running: state('▶', 'running', 'run'),
  waiting: state('·', 'waiting', 'muted'),
  'not-run': state('–', 'not run', 'muted'),
  'not-ended': state('■', 'not ended', 'warn'),
}

const pointStates: Record<PointVerdict, State> = {
  [PointVerdict.UNSPECIFIED]: trialStates.running,
  [PointVerdict.SUCCEEDED]: trialStates.succeeded,
  [PointVerdict.FAILED]: trialStates.failed,
  [PointVerdict.TIMED_OUT]: trialStates['timed-out'],
  [PointVerdict.ABORTED]: trialStates.aborted,
  [PointVerdict.INVALID]: trialStates.invalid,
  [PointVerdict.UNVERIFIED]: state('?', 'not verified', 'warn'),
}
/** The verdict of an attempt as results have it; one without a verdict has not ended where the run is over. */
export const pointState = (v: PointVerdict, over = false): State =>
  over && v === PointVerdict.UNSPECIFIED ? trialStates['not-ended'] : (pointStates[v] ?? unknown)

/** The verdict of an attempt as the journal has it; empty while it runs, and for ever where the run was over before. */
export function verdictState(verdict: string, over = false): State {
  if (!verdict) return trialStates[over ? 'not-ended' : 'running']
  return trialStates[verdict as TrialKind] ?? { ...unknown, word: verdict }
}

/** Runs whose results are not complete, in the words of who counts them. */
export const partialState = (word = 'partial'): State => state('◔', word, 'warn')
/** The same of a figure, below its title. */
export const PARTIAL_NOTE = 'Partial: not all trials have ended.'

/** Results that another orchestrator has measured. */
export const importedState: State = state('⇥', 'imported', 'muted')

const checkStates: Record<CheckState, State> = {
  [CheckState.OK]: state('✓', 'passed', 'ok'),
  [CheckState.WARNING]: state('!', 'warning', 'warn'),
  [CheckState.FAILED]: state('✕', 'failed', 'bad'),
  [CheckState.UNKNOWN]: state('?', 'unknown', 'warn'),
  [CheckState.UNSPECIFIED]: state('–', 'not checked', 'muted'),
}
/** One check of a preflight. */
export const checkState = (s: CheckState): State => checkStates[s] ?? unknown
export const preflightRunning = state('▶', 'running', 'run')

/** One check of the conformance suite. */
export function conformanceState(outcome: string): State {
  const known: Record<string, State> = {
    passed: state('✓', 'passed', 'ok'),
    failed: state('✕', 'failed', 'bad'),
    skipped: state('–', 'skipped', 'warn'),
  }
  return known[outcome] ?? { ...unknown, word: outcome }
}

/** A node in a run with in-band control is silent while a trial runs: that is no fault. */
export const nodeState = (connected: boolean, silent = false): State =>
  connected
    ? state('●', 'connected', 'ok')
    : silent
      ? state('○', 'silent, in-band', 'muted')
      : state('○', 'no contact', 'bad')

/** A link between two nodes over the radio, as a preflight measured it. */
export const linkState = (reachable: boolean, loss: number): State =>
  reachable ? state('✓', 'answers', loss > 0.05 ? 'warn' : 'ok') : state('✕', 'no answer', 'bad')

/** How many nodes the orchestrator has contact with; those that are silent in a run with in-band control are none to miss. */
export const fleetState = (connected: number, all: number, silent = 0): State =>
  silent
    ? state(
        '○',
        `${connected} of ${all} nodes connected, ${silent} silent, in-band`,
        connected + silent < all ? 'warn' : 'muted',
      )
    : connected
      ? state(connected < all ? '◐' : '●', `${connected} of ${all} nodes connected`, connected < all ? 'warn' : 'ok')
      : state('○', 'no node is connected', 'warn')

const identityStates: Record<Identity, State> = {
  [Identity.UNSPECIFIED]: unknown,
  [Identity.NONE]: state('–', 'not enrolled', 'muted'),
  [Identity.INVITED]: state('◷', 'token created', 'warn'),
  [Identity.ENROLLED]: state('✓', 'enrolled', 'ok'),
  [Identity.EXPIRED]: state('✕', 'expired', 'bad'),
  [Identity.REVOKED]: state('⊘', 'revoked', 'bad'),
}
export const identityState = (s: Identity): State => identityStates[s] ?? unknown

/** A laptop that has joined by a code: its enrolment follows at once, its agent when it is started. */
export const joinedState = (connected: boolean): State =>
  connected ? state('●', 'connected', 'ok') : state('◷', 'enrols', 'warn')

/** A driver on one node: undefined where the node has none of the protocol. */
export function driverState(driver: { unsupported: string } | undefined): State {
  if (!driver) return state('–', 'not installed', 'warn')
  return driver.unsupported ? state('✕', 'cannot run', 'bad') : state('✓', 'can run', 'ok')
}
export const ownDriver = state('✓', 'the orchestrator’s own', 'ok')

export const labState = state('●', 'running', 'ok')
export const labAgentState = (runs: boolean): State => (runs ? labState : state('○', 'not running', 'bad'))
export const controlLinkState = (up: boolean): State => (up ? state('—', 'joined', 'ok') : state('✂', 'cut', 'warn'))

const scheduleStates: Record<string, State> = {
  waiting: state('◷', 'waiting', 'muted'),
  started: state('✓', 'started', 'ok'),
  failed: state('✕', 'could not start', 'bad'),
  missed: state('!', 'missed', 'bad'),
  cancelled: state('⊘', 'cancelled', 'muted'),
  skipped: state('⇥', 'skipped', 'warn'),
}
export const scheduleState = (s: string): State => scheduleStates[s] ?? { ...unknown, word: s }

const recurrenceStates: Record<string, State> = {
  active: state('↻', 'active', 'ok'),
  paused: state('‖', 'paused', 'warn'),
  ended: state('■', 'ended', 'muted'),
}
export const recurrenceState = (s: string): State => recurrenceStates[s] ?? { ...unknown, word: s }

const outcomeStates: Record<string, State> = {
  done: state('✓', 'done', 'ok'),
  refused: state('⊘', 'refused', 'warn'),
  failed: state('✕', 'failed', 'bad'),
}
/** What became of something that a person did, as the audit log has it. */
export const outcomeState = (outcome: string): State => outcomeStates[outcome] ?? { ...unknown, word: outcome }

export const accountState = (disabled: boolean): State =>
  disabled ? state('⊘', 'disabled', 'bad') : state('●', 'enabled', 'ok')

export type TokenState = 'valid' | 'revoked' | 'expired'
const tokenStates: Record<TokenState, State> = {
  valid: state('●', 'valid', 'ok'),
  revoked: state('⊘', 'revoked', 'bad'),
  expired: state('◷', 'expired', 'muted'),
}
export const tokenStateMark = (s: TokenState): State => tokenStates[s]
export type DigestKind = 'same' | 'other' | 'unknown' | 'none'
/** Whether the digest of what arrived is that of what was sent. */
export const digestStates: Record<DigestKind, State> = {
  same: state('✓', 'same', 'ok'),
  other: state('✕', 'differs', 'bad'),
  unknown: state('?', 'not known', 'muted'),
  none: state('?', 'not known', 'muted'),
}
export function digestKind(sent: string, received: string): DigestKind {
  if (!sent) return 'none'
  if (!received) return 'unknown'
  return sent === received ? 'same' : 'other'
}

const requiredStates: Partial<Record<RequiredOutcome, State>> = {
  [RequiredOutcome.PASS]: state('✓', 'pass', 'ok'),
  [RequiredOutcome.FAIL]: state('✕', 'fail', 'bad'),
  [RequiredOutcome.UNDECIDED]: state('?', 'undecided', 'warn'),
}
/** What results say of a requirement of the plan. */
export const requiredState = (o: RequiredOutcome): State => requiredStates[o] ?? unknown

const usableStates: Record<string, State> = {
  yes: state('✓', 'yes', 'ok'),
  no: state('✕', 'no', 'bad'),
  undecided: state('?', 'undecided', 'warn'),
}
/** Whether a measured link is good enough for a use. */
export const usableState = (outcome: string): State => usableStates[outcome] ?? { ...unknown, word: outcome }

/** What somebody has to look at: so many things, and whether one of them is a fault. */
export const attentionState = (things: number, fault: boolean): State =>
  things
    ? state('!', things === 1 ? '1 needs attention' : `${things} need attention`, fault ? 'bad' : 'warn')
    : state('✓', 'nothing needs attention', 'ok')

/** How deliveries by a webhook or e-mail go. */
export function notificationChannelState(c: {
  off: boolean
  error: string
  waiting: number
  delivered: number
}): State {
  if (c.off) return state('‖', 'off', 'muted')
  if (c.error) return state('✕', 'last delivery failed', 'bad')
  if (c.waiting) return state('◷', 'delivering', 'run')
  return c.delivered ? state('✓', 'delivered', 'ok') : state('–', 'nothing sent yet', 'muted')
}

const browserStates = {
  on: state('✓', 'on', 'ok'),
  off: state('○', 'off', 'muted'),
  impossible: state('!', 'not possible here', 'warn'),
}
/** The browser's own notifications. */
export const browserNotificationState = (s: keyof typeof browserStates): State => browserStates[s]

/** A notification that somebody has to see, one that came since the page was last read, and any other. */
export const notificationState = (urgent: boolean, unseen: boolean): State | undefined =>
  urgent ? state('!', 'urgent', 'warn') : unseen ? state('●', 'new', 'run') : undefined

/** Short messages of the pages, by what they are. */
export const toastStates: Record<'success' | 'warning' | 'error', Omit<State, 'word'>> = {
  success: { glyph: '✓', tone: 'ok' },
  warning: { glyph: '!', tone: 'warn' },
  error: { glyph: '✕', tone: 'bad' },
}

export const uncertain = state('?', 'uncertain', 'warn')
