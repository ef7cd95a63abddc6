// Typed clients of the orchestrator's services, and what goes wrong with them in
// the server's own words.
import { Code, ConnectError, createClient, type Interceptor } from '@connectrpc/connect'
import { createConnectTransport } from '@connectrpc/connect-web'
import { AccessService } from '@/gen/linktrial/v1/access_pb'
import { CatalogService, LabService } from '@/gen/linktrial/v1/lab_pb'
import { DayService } from '@/gen/linktrial/v1/day_pb'
import { EvidenceService } from '@/gen/linktrial/v1/evidence_pb'
import { ControlService } from '@/gen/linktrial/v1/control_pb'
import { NodeService } from '@/gen/linktrial/v1/enrol_pb'
import { FleetService } from '@/gen/linktrial/v1/fleet_pb'
import { JoinService } from '@/gen/linktrial/v1/join_pb'
import { LibraryService } from '@/gen/linktrial/v1/library_pb'
import { MeasureService } from '@/gen/linktrial/v1/measure_pb'
import { NotificationService } from '@/gen/linktrial/v1/notification_pb'
import { OperatorService } from '@/gen/linktrial/v1/operator_pb'
import { ReportService } from '@/gen/linktrial/v1/report_pb'
import { ResultService } from '@/gen/linktrial/v1/result_pb'
import { TrustService } from '@/gen/linktrial/v1/trust_pb'

let lost: () => void = () => {}
/** Who hears that the orchestrator does not know any more who calls. */
export function onLoginLost(then: () => void): void {
  lost = then
}

export interface CallListener {
  /** A call begins; what it returns is called when it was answered, or has failed. */
  began(): () => void
  /** An answer, or a part of one, has arrived. */
  heard(): void
  /** A call has failed in a way that leaves open whether the orchestrator is there. */
  failed(): void
}
let listener: CallListener | undefined
/** Who wants to know whether the orchestrator answers. */
export function onCalls(l: CallListener): void {
  listener = l
}

const withoutAnswer = new Set([Code.Unavailable, Code.Unknown, Code.DeadlineExceeded, Code.Canceled])

function tell(error: unknown) {
  const code = ConnectError.from(error).code
  if (!withoutAnswer.has(code)) listener?.heard()
  else if (code !== Code.Canceled) listener?.failed() // cancelled by the page itself
}

// Every answer shows that the orchestrator is there, and so does a refusal.
const listen: Interceptor = (next) => async (req) => {
  const over = listener?.began()
  try {
    const res = await next(req)
    if (!res.stream) {
      listener?.heard()
      return res
    }
    const message = res.message
    return {
      ...res,
      message: (async function* () {
        try {
          for await (const m of message) {
            listener?.heard()
            yield m
          }
        } catch (e) {
          tell(e)
          throw e
        }
      })(),
    }
  } catch (e) {
    tell(e)
    throw e
  } finally {
    over?.()
  }
}

function hear(error: unknown): never {
  if (ConnectError.from(error).code === Code.Unauthenticated) lost()
  throw error
}

// A session can end under any call, also while a stream is open.
const watchLogin: Interceptor = (next) => async (req) => {
  if (req.service.typeName === AccessService.typeName && req.method.name === 'Login') return next(req)
  const res = await next(req).catch(hear)
  if (!res.stream) return res
  const message = res.message
  return {
    ...res,
    message: (async function* () {
      try {
        yield* message
      } catch (e) {
        hear(e)
      }
    })(),
  }
}

const transport = createConnectTransport({
  baseUrl: window.location.origin,
  useBinaryFormat: true,
  interceptors: [listen, watchLogin],
})

export const access = createClient(AccessService, transport)
export const operator = createClient(OperatorService, transport)
export const days = createClient(DayService, transport)
export const evidence = createClient(EvidenceService, transport)
export const control = createClient(ControlService, transport)
export const results = createClient(ResultService, transport)
export const reports = createClient(ReportService, transport)
export const library = createClient(LibraryService, transport)
export const fleet = createClient(FleetService, transport)
export const lab = createClient(LabService, transport)
export const catalog = createClient(CatalogService, transport)
export const nodes = createClient(NodeService, transport)
export const joins = createClient(JoinService, transport)
export const measure = createClient(MeasureService, transport)
export const notifications = createClient(NotificationService, transport)
export const trust = createClient(TrustService, transport)

/**
 * Whether the orchestrator itself answered that it cannot answer now, as it does while
 * its database is down; a proxy's answer has only a status.
 */
export function unavailableHere(error: unknown): boolean {
  const e = ConnectError.from(error)
  return e.code === Code.Unavailable && e.rawMessage !== '' && !/^HTTP \d+/.test(e.rawMessage)
}

/** What browsers and the client library say of a connection that broke or a call that took too long. */
const brokenConnection = /fetch|network|load failed|aborted/i
const brokenAnswer = /premature|EndStream|end of stream|missing trailer|protocol error/i

function noAnswer(e: ConnectError): boolean {
  switch (e.code) {
    case Code.Unavailable:
    case Code.Canceled:
    case Code.DeadlineExceeded:
      return true
    case Code.Unknown:
      return brokenConnection.test(e.rawMessage) || brokenAnswer.test(e.rawMessage)
    case Code.Internal:
      return brokenAnswer.test(e.rawMessage)
  }
  return false
}

/** What went wrong, for people: the server's own words where it answered. */
export function explain(error: unknown): string {
  const e = ConnectError.from(error)
  if (unavailableHere(error)) return e.rawMessage
  if (noAnswer(e)) return 'The orchestrator does not answer. It may have been stopped: linktrial serve starts it.'
  if (e.code === Code.Unimplemented)
    return 'This orchestrator cannot do that: it is of another version than this page. Reload the page.'
  return e.rawMessage
}

/** Aborted calls are the page's own doing and no error to show. */
export function isCancelled(error: unknown): boolean {
  return ConnectError.from(error).code === Code.Canceled
}
