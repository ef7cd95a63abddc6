package audit

import (
	"encoding/json"
	"strings"
	"time"

	"linktrial/executor/journal"
)

// nodeClock is what a journal tells of its node's clock. Times are taken to be by the
// clock as it was when the journal began: the steps before a record are taken off.
type nodeClock struct {
	boot    string        // the start of the node within which steps are told; empty: they are not
	stepped time.Duration // up to the record that is taken
	latest  time.Time     // of the records so far, in this start of the node
	steps   []clockStep

	compared bool // with the orchestrator's, whose clock less this one is
	offset   time.Duration
	bound    time.Duration
}

// clockStep is a step of a node's clock at some time between two.
type clockStep struct {
	at       Finding
	by       time.Duration
	from, to time.Time // from: zero where it is not known
}

// orderTolerance is the least step of a clock that journals tell.
const orderTolerance = time.Millisecond

// takeTime takes the steps of the clock off a record's time, and checks that it is not
// earlier than the record before.
func (a *auditor) takeTime(s *source, e *entry) {
	c, k := a.check(Clocks), &s.clock
	switch journal.Type(e.kind) {
	case journal.TypeClockStepped:
		var b journal.ClockStepped
		if !decode(a, s, e, &b) {
			return
		}
		k.stepped += b.By
		if b.Reboot { // the record of the node's start has a time of the clock since, too
			k.latest = time.Time{}
		}
		x := clockStep{at: s.where(e.seq), by: b.By, to: e.at.Add(-k.stepped)}
		if b.Within > 0 {
			x.from = x.to.Add(-b.Within)
		}
		k.steps = append(k.steps, x)
	case journal.TypeRunStarted, journal.TypeRunResumed:
		var b journal.RunStarted
		if json.Unmarshal(e.body, &b) == nil && b.Boot != k.boot { // else it is a finding when it is taken
			k.boot, k.latest = b.Boot, time.Time{}
		}
	case journal.TypeClockOffset:
		var b journal.ClockOffset
		if !decode(a, s, e, &b) {
			return
		}
		if !k.compared && b.Unknown == "" {
			k.compared, k.offset, k.bound = true, b.Offset+k.stepped, b.Error
		}
	}
	e.at = e.at.Add(-k.stepped)
	if k.boot == "" {
		return
	}
	c.Objects++
	if e.at.Add(orderTolerance).Before(k.latest) {
		c.find(s.where(e.seq), "its time is %s before that of an earlier record, and no step of the clock is told", k.latest.Sub(e.at))
	}
	if e.at.After(k.latest) {
		k.latest = e.at
	}
}

// leaderClock is the clock by which attempts are placed in time.
func (a *auditor) leaderClock() nodeClock {
	for _, s := range a.sources {
		if s.role == "client" {
			return s.clock
		}
	}
	return nodeClock{}
}

// ahead is by how much the orchestrator's clock is ahead of a node's, where that is more
// than the comparison leaves open.
func (k *nodeClock) ahead() time.Duration {
	if k.offset.Abs() <= k.bound {
		return 0
	}
	return k.offset
}

// checkClocks looks for attempts during which a clock stepped by more than the plan
// allows, and that count.
func (a *auditor) checkClocks() {
	c := a.check(Clocks)
	steps := 0
	var silent []string
	for _, s := range a.sources {
		steps += len(s.clock.steps)
		if s.records > 0 && s.clock.boot == "" {
			silent = append(silent, s.node)
		}
	}
	if len(silent) > 0 {
		c.skip("the journals of %s tell no steps of clocks: they are of an earlier version, or of virtual time without faults", strings.Join(silent, ", "))
	}
	if c.Objects == 0 {
		return
	}
	c.note("the clocks of the nodes stepped %d times", steps)
	if a.sheet.Valid == nil || a.sheet.Valid.ClockStep == 0 || steps == 0 {
		return
	}
	if !a.run.Ended() {
		c.skip("the run has not ended: which attempts break the rule clock_step is still being decided")
		return
	}
	rows, leads := a.rows(), a.leaderClock()
	for _, s := range a.sources {
		for _, x := range s.clock.steps {
			if x.by.Abs() <= a.sheet.Valid.ClockStep || x.from.IsZero() {
				continue
			}
			between := s.clock.ahead() - leads.ahead()
			margin := s.clock.bound + leads.bound
			from, to := x.from.Add(between-margin), x.to.Add(between+margin)
			for _, t := range a.history.all {
				row := rows[key{t.trial, t.number}]
				if row == nil || !t.ended || t.started.After(from) || t.endedAt.Before(to) {
					continue
				}
				switch journal.Verdict(row.Verdict) {
				case journal.Succeeded, journal.Failed, journal.TimedOut:
					c.find(t.at, "it counts as %s, and the clock of the %s stepped by %s meanwhile (record %d of %s)", row.Verdict, s.role, x.by, x.at.Record, s.node)
				}
			}
		}
	}
}
