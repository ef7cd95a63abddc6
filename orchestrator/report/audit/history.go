package audit

import (
	"slices"
	"strings"
	"time"

	"linktrial/executor/journal"
)

// attempt is an attempt of the leading node's journal.
type attempt struct {
	at        Finding // its attempt-started
	trial     int
	number    int
	treatment string
	transfers []string
	started   time.Time
	connects  []time.Time // when each flow whose connection the leading node established began to connect

	ended    bool
	endedAt  time.Time
	verdict  journal.Verdict
	reason   string
	duration time.Duration
	flows    []journal.FlowResult
	control  *journal.ControlTraffic
}

// carried is when the first packet of an attempt may have been sent: it is started before
// listeners and channel are waited for. Where a flow begins elsewhere, or did not connect,
// that is its start.
func (x *attempt) carried() time.Time {
	if len(x.connects) == 0 || len(x.connects) < len(x.transfers) {
		return x.started
	}
	return slices.MinFunc(x.connects, time.Time.Compare)
}

// trial is a trial by the leading node's journal.
type trial struct {
	attempts []*attempt
	ended    *journal.TrialEnded // the last one; nil: not ended
	closed   bool                // ended, and not opened again by a command
	skip     bool                // a command ends it

	// Of the time since it was opened:
	repeat  bool // it was opened by a command
	begun   bool
	counted int // attempts that say something of the protocol, and those that nothing explains
	unclear int // of these, undetermined
	success bool
	untrue  bool // the last attempt that counts has values that cannot be true
	last    *attempt
}

// history follows the records of the leading node in their order.
type history struct {
	checks *auditor
	trials map[int]*trial
	all    []*attempt // in the order of their start
	open   *attempt   // that has no end yet
	lowest int        // the first trial of the sheet that has not ended
	opened []int      // trials that commands have opened again and that wait
	begun  int        // the trial that has attempts and no end; -1: none
	ended  *journal.RunEnded
	seen   bool // there are records of a leading node
}

func (h *history) trial(n int) *trial {
	if h.trials == nil {
		h.trials, h.begun = map[int]*trial{}, -1
	}
	h.seen = true
	t := h.trials[n]
	if t == nil {
		t = &trial{}
		h.trials[n] = t
	}
	return t
}

func (h *history) check(code string) *Check { return h.checks.check(code) }

// inSheet reports whether the sheet has a trial; where not, it is a finding.
func (h *history) inSheet(at Finding, n int) bool {
	if n >= 0 && n < len(h.checks.sheet.Trials) {
		return true
	}
	h.check(Order).find(at, "trial %d, the sheet has trials 0 to %d", n, len(h.checks.sheet.Trials)-1)
	return false
}

// placed is a place in a journal with the trial and the attempt of the record there.
func placed(at Finding, trial, attempt int) Finding {
	at.Trial, at.Attempt = &trial, attempt
	return at
}

func (h *history) start(at Finding, when time.Time, b *journal.AttemptStarted) {
	at = placed(at, b.Trial, b.Attempt)
	if !h.inSheet(at, b.Trial) {
		return
	}
	t := h.trial(b.Trial)
	numbering := h.check(Numbering)
	numbering.Objects++
	if o := h.open; o != nil {
		numbering.find(at, "it starts while attempt %d of trial %d has no end", o.number, o.trial)
	}
	h.number(at, t, b.Attempt)
	h.allowed(at, t)
	h.inOrder(at, t, b)
	h.checks.checkNeeded(at, b.Trial)
	a := &attempt{at: at, trial: b.Trial, number: b.Attempt, treatment: b.Treatment, transfers: b.Transfers, started: when}
	t.attempts = append(t.attempts, a)
	h.all, h.open = append(h.all, a), a
	if !t.closed { // else it is a finding already
		t.begun, h.begun = true, b.Trial
	}
	h.opened = without(h.opened, b.Trial)
}

// number checks the number of an attempt that starts.
func (h *history) number(at Finding, t *trial, n int) {
	highest := 0
	for _, a := range t.attempts {
		highest = max(highest, a.number)
	}
	switch {
	case n <= highest:
		h.check(Numbering).find(at, "the trial has had attempts up to %d: one of them is overwritten", highest)
	case n > highest+1:
		h.check(Numbering).find(at, "the trial has had attempts up to %d: attempt %d is missing", highest, highest+1)
	}
}

// allowed checks that a trial may have one more attempt.
func (h *history) allowed(at Finding, t *trial) {
	c := h.check(Numbering)
	switch limit := h.checks.sheet.Limits.Attempts; {
	case t.closed:
		c.find(at, "it starts after the trial had ended, and no command repeats it")
	case t.success:
		c.find(at, "it follows a success of the same trial")
	case t.repeat && t.counted > min(t.unclear, freeUndetermined):
		c.find(at, "a repetition by command is a single attempt, and this is one more")
	case t.counted-min(t.unclear, freeUndetermined) >= limit:
		c.find(at, "%d attempts of the trial had counted before, and the plan allows %d (limits.attempts)", t.counted, limit)
	case t.untrue:
		c.find(at, "it follows an attempt whose values cannot be true, after which there is none")
	}
}

// inOrder checks that the attempt is the next one by the sheet.
func (h *history) inOrder(at Finding, t *trial, b *journal.AttemptStarted) {
	c := h.check(Order)
	c.Objects++
	of := &h.checks.sheet.Trials[b.Trial]
	if b.Iteration != of.Iteration || b.Treatment != of.Treatment {
		c.find(at, "it ran as %s in iteration %d; by the sheet trial %d is %s in iteration %d", b.Treatment, b.Iteration, b.Trial, of.Treatment, of.Iteration)
	}
	switch {
	case t.begun && h.begun == b.Trial: // one more attempt, in its place
	case t.closed: // a finding of the numbering
	case h.begun >= 0:
		c.find(at, "it starts before trial %d, which has had attempts, has ended", h.begun)
	case t.repeat:
		if h.opened[0] != b.Trial {
			c.find(at, "it starts before trial %d, whose repetition was commanded before", h.opened[0])
		}
	case len(h.opened) > 0:
		c.find(at, "it starts before trial %d, whose repetition was commanded, is repeated", h.opened[0])
	case b.Trial != h.lowest:
		c.find(at, "it starts before trial %d, which comes before it in the sheet, has ended", h.lowest)
	}
}

// connected notes when a flow of the open attempt began to connect.
func (h *history) connected(when time.Time, b *journal.Connected) {
	if a := h.open; a != nil && a.trial == b.Trial && a.number == b.Attempt {
		a.connects = append(a.connects, when.Add(-time.Duration(b.ConnectNS)))
	}
}

func (h *history) finish(at Finding, when time.Time, b *journal.AttemptEnded) {
	at = placed(at, b.Trial, b.Attempt)
	if !h.inSheet(at, b.Trial) {
		return
	}
	a := h.open
	if a == nil || a.trial != b.Trial || a.number != b.Attempt {
		for _, x := range h.trial(b.Trial).attempts {
			if x.number == b.Attempt && x.ended {
				h.check(Numbering).find(at, "the attempt ends a second time")
				return
			}
		}
		h.check(Numbering).find(at, "the attempt ends, and it is not the one that was started last")
		return
	}
	h.open = nil
	a.ended, a.endedAt, a.verdict, a.reason, a.duration, a.flows, a.control = true, when, b.Verdict, b.Reason, b.Duration, b.Flows, b.Control
	if b.Treatment != a.treatment {
		h.check(Order).find(at, "it was started as %s and ends as %s", a.treatment, b.Treatment)
	}
	if !counts(b.Verdict, b.Reason) {
		return
	}
	t := h.trial(b.Trial)
	t.counted++
	if b.Reason == undetermined {
		t.unclear++
	}
	t.last = a
	t.success = b.Verdict == journal.Succeeded
	t.untrue = b.Verdict == journal.Invalid && b.Reason != undetermined
}

// counts reports whether an attempt is one of those that the plan's limit allows:
// not one that was interrupted, nor one that something else than the protocol made
// invalid (docs/data-format.md).
func counts(v journal.Verdict, reason string) bool {
	if v == journal.Invalid {
		return untrue(reason) || reason == undetermined || reason == "bad-parameters"
	}
	return reason != "interrupted"
}

// undetermined is the reason of an attempt of which nothing tells whose fault it was: it
// is not the protocol's. The first two of a trial are not among those that the plan's
// limit allows; by versions before, the first was.
const (
	undetermined     = "undetermined"
	freeUndetermined = 2
)

// untrue reports whether a reason is one of the rules that a driver's values broke.
func untrue(reason string) bool {
	switch reason {
	case "longer-than-run", "shorter-than-run", "more-than-sent", "faster-than-radio", "faster-than-ideal", "fewer-than-lost", "faster-than-packets":
		return true
	}
	return false
}

func (h *history) endTrial(at Finding, b *journal.TrialEnded) {
	at = placed(at, b.Trial, 0)
	if !h.inSheet(at, b.Trial) {
		return
	}
	t := h.trial(b.Trial)
	c := h.check(Numbering)
	if t.closed {
		c.find(at, "the trial ends a second time")
		return
	}
	if h.open != nil && h.open.trial == b.Trial {
		c.find(placed(at, b.Trial, h.open.number), "the trial ends while its attempt has no end")
	}
	highest := 0
	for _, a := range t.attempts {
		highest = max(highest, a.number)
	}
	if b.Attempts != highest {
		c.find(at, "trial-ended has %d attempts, the journal %d", b.Attempts, highest)
	}
	h.checks.checkNotNeeded(at, t, b)
	h.outcome(at, t, b)
	t.ended, t.closed, t.repeat, t.begun, t.skip = b, true, false, false, false
	t.counted, t.unclear, t.success, t.untrue = 0, 0, false, false
	h.opened = without(h.opened, b.Trial)
	if h.begun == b.Trial {
		h.begun = -1
	}
	for h.lowest < len(h.checks.sheet.Trials) {
		if next := h.trials[h.lowest]; next == nil || next.ended == nil {
			break
		}
		h.lowest++
	}
}

// outcome checks that a trial ends with the outcome of its last attempt that counts.
func (h *history) outcome(at Finding, t *trial, b *journal.TrialEnded) {
	c := h.check(Trials)
	if b.Reason == journal.ReasonNotNeeded {
		return // why it has no attempt that counts is of the looks
	}
	if b.Reason == journal.ReasonSkipped {
		if !t.skip {
			c.find(at, "it ended as skipped, and no command skips it")
		}
		if b.Verdict != journal.Aborted && (t.last == nil || b.Verdict != t.last.verdict) {
			c.find(at, "it was skipped and ended as %s, which none of its attempts is", b.Verdict)
		}
		return
	}
	switch limit := h.checks.sheet.Limits.Attempts; {
	case t.last == nil || t.counted == 0:
		c.find(at, "it ended as %s without an attempt that counts", b.Verdict)
	case b.Verdict != t.last.verdict:
		c.find(at, "it ended as %s, its last attempt that counts (%d) as %s", b.Verdict, t.last.number, t.last.verdict)
	case len(t.attempts) > 0 && t.attempts[len(t.attempts)-1] != t.last:
		c.find(at, "its last attempt does not count, and no other followed")
	case !t.repeat && t.counted < limit && !t.success && !t.untrue && !strings.HasPrefix(t.last.reason, journal.ReasonAborted):
		c.find(at, "it ended as %s after %d attempts that count, and the plan allows %d (limits.attempts)", b.Verdict, t.counted, limit)
	}
}

func (h *history) command(at Finding, b *journal.Command) {
	if b.Rejected != "" || b.Trial == nil || !h.inSheet(at, *b.Trial) {
		return
	}
	at = placed(at, *b.Trial, 0)
	t := h.trial(*b.Trial)
	switch b.Kind {
	case journal.CommandSkip:
		t.skip = true
	case journal.CommandRepeat:
		if !t.closed {
			h.check(Numbering).find(at, "the trial is to be repeated, and it has not ended")
			return
		}
		t.closed, t.repeat, t.skip = false, true, false
		h.opened = append(h.opened, *b.Trial)
	}
}

func without(list []int, n int) []int {
	out := list[:0]
	for _, x := range list {
		if x != n {
			out = append(out, x)
		}
	}
	return out
}

// end is called after the last record.
func (h *history) end() {
	if o := h.open; o != nil && h.checks.run.State == "completed" {
		h.check(Numbering).find(o.at, "the run is completed, and the attempt has no end")
	}
	if !h.seen {
		for _, code := range []string{Numbering, Order, Trials, Digests, Attempts} {
			h.check(code).skip("there is no record of the leading node")
		}
	}
}
