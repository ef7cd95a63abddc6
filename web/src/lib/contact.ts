// Whether the orchestrator answers: every answer counts, and where none has come for a
// while, or a call waits, it is asked by /healthz, which also asks its database.

export interface Outage {
  /** The last answer, in milliseconds of this machine's clock. */
  since: number
  /** The orchestrator answers, and this is what is wrong with its database, in the orchestrator's words. */
  database?: string
}

/** What an answer to /healthz says of the database: "the database WHAT (since 14:59:05 UTC, 12 s): …". */
const ofDatabase = /^the database (.+?)(?: \(since \S+ UTC, (\d+) s\))?:/
/** A database that can be read and takes no changes says something else. */
export const silent = 'does not answer'

// A page says within 8 s that nothing answers: idleMs and probeMs together, and a step.
const stepMs = 500
const idleMs = 3_500
/** A call that takes longer is a reason to ask; values of large campaigns take that long too. */
const waitMs = 2_500
/** A database that takes no changes still answers, so it is asked while everything is answered, too. */
const alwaysMs = 5_000
/** Longer than /healthz waits for the database (HealthLimit of the orchestrator's server). */
const probeMs = 3_300
const againMs = 2_000

export interface ContactOptions {
  probe(signal: AbortSignal): Promise<{ ok: boolean; status: number; text(): Promise<string> }>
  /** Called when an outage begins, and with undefined when it is over. */
  changed(outage: Outage | undefined): void
  /** Nobody looks: nothing is asked meanwhile. */
  hidden(): boolean
}

export class Contact {
  private heardAt = Date.now()
  private askedAt = 0
  private asking = false
  private readonly waiting = new Set<{ since: number }>()
  private readonly timer: ReturnType<typeof setInterval>
  private outage?: Outage

  constructor(private readonly o: ContactOptions) {
    this.timer = setInterval(() => this.step(), stepMs)
  }

  stop() {
    clearInterval(this.timer)
  }

  /** Something arrived from the orchestrator. */
  heard() {
    this.heardAt = Date.now()
  }

  /** A call begins; what it returns must be called when an answer came or it failed. */
  began(): () => void {
    const call = { since: Date.now() }
    this.waiting.add(call)
    return () => void this.waiting.delete(call)
  }

  private step() {
    if (this.o.hidden()) return
    const now = Date.now()
    const slow = [...this.waiting].some((c) => now - c.since >= waitMs)
    const due = this.outage ? againMs : slow ? waitMs : idleMs
    const asked = now - this.askedAt
    if ((asked >= due && (this.outage || slow || now - this.heardAt >= idleMs)) || asked >= alwaysMs) void this.ask()
  }

  /** Asks at once: a call has failed, or a person wants to know. */
  async ask(): Promise<void> {
    if (this.asking) return
    this.asking = true
    const began = (this.askedAt = Date.now())
    const limit = new AbortController()
    const late = setTimeout(() => limit.abort(), probeMs)
    let answer: { ok: boolean; status: number } | undefined
    let text = ''
    try {
      const whole = await this.o.probe(limit.signal)
      if (whole.status === 503) text = await whole.text()
      answer = whole
    } catch {
      // No answer.
    } finally {
      clearTimeout(late)
      this.asking = false
    }
    if (answer?.ok) {
      this.heard()
      if (this.outage) this.o.changed((this.outage = undefined))
      return
    }
    const said = ofDatabase.exec(text)
    const database = answer?.status === 503 ? (said?.[1] ?? silent) : undefined
    // The browser makes few connections at once: the question may have waited behind calls that are answered.
    if (!answer && limit.signal.aborted && this.heardAt > began) return
    if (this.outage && this.outage.database === database) return
    // One that answers says since when it takes no changes; what was heard meanwhile does not matter.
    const known = said?.[2] && database !== silent ? began - Number(said[2]) * 1000 : Math.min(this.heardAt, began)
    this.outage = { since: this.outage?.since ?? known, database }
    this.o.changed(this.outage)
  }
}
