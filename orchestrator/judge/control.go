package judge

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"linktrial/executor/journal"
	"linktrial/internal/radio"
	"linktrial/orchestrator/report"
)

// With in-band control every node counts the packets between it and the orchestrator.
// The leading node knows attempts and decides about its own; of the other nodes, whose
// counts are by time, it is decided here which attempts they met.

// Counter is what a node that does not lead counted, as far as it was delivered.
type Counter struct {
	Role    radio.Role
	Records []Counted // in order
	Ended   bool      // its part in the run: no more follow

	absent bool // no node of the role takes part in the run
}

// Counted is one of its records, with times by the node's clock.
type Counted struct {
	Clock Clock
	journal.ControlCounted
}

// Counters adds to a run's counters those of roles as which no node takes part, and puts
// all in the order of roles.
func Counters(all []Counter, roles []radio.Role) []Counter {
	for _, role := range roles {
		if role != leader && !slices.ContainsFunc(all, func(x Counter) bool { return x.Role == role }) {
			all = append(all, Counter{Role: role, absent: true, Ended: true})
		}
	}
	slices.SortFunc(all, func(a, b Counter) int {
		return cmp.Compare(slices.Index(radio.Roles, a.Role), slices.Index(radio.Roles, b.Role))
	})
	return all
}

// Control counts the control packets that an attempt met at each node, and marks one
// that met some at another node than the leading one. No counts: that of a node may still
// come; it does not where last is set.
func Control(a *Attempt, others []Counter, last bool) (counts []report.ControlCount, mark *Mark) {
	own := report.ControlCount{Role: leader}
	if a.Control == nil {
		own.Unknown = "the node's agent could not count them (its log says why)"
	} else {
		own.Packets, own.Bytes = a.Control.Packets, a.Control.Bytes
	}
	counts = append(counts, own)
	for i := range others {
		x := &others[i]
		c, complete := x.during(a.from(), a.to(), a.Clock.Bound)
		if !complete && !last {
			return nil, nil
		}
		counts = append(counts, c)
		if c.Packets > 0 && mark == nil {
			mark = a.mark(fmt.Sprintf("%d control packets with %d B passed at the %s, of which an attempt with in-band control has none", c.Packets, c.Bytes, x.Role), a.ended(), true)
		}
	}
	return counts, mark
}

// countStep is how closely in time a node that does not lead knows when a packet passed.
const countStep = 100 * time.Millisecond

// during is what the node counted in a time by the orchestrator's clock; complete: it has
// delivered its counts until the end of that time. Packets between the node itself and the
// orchestrator are counted where they may have passed in that time. Those of other nodes
// are counted there, too, and the leading node calls right before and after its attempts:
// so of these only what is certain to have passed in that time.
func (x *Counter) during(from, to time.Time, bound time.Duration) (c report.ControlCount, complete bool) {
	c.Role = x.Role
	if x.absent {
		c.Unknown = fmt.Sprintf("no node takes part in the run as the %s, so what passed there was not observed", x.Role)
		return c, true
	}
	leads := bound
	reached, gap := from, time.Time{}
	complete = x.Ended
	for i := range x.Records {
		r := &x.Records[i]
		since, until := r.Since.Add(r.Clock.Offset), r.Until.Add(r.Clock.Offset)
		bound = leads + r.Clock.Bound
		complete = complete || !until.Before(to)
		if until.Add(bound).Before(from) || since.Add(-bound).After(to) {
			continue
		}
		c.Packets, c.Bytes = c.Packets+r.Packets-r.Others, c.Bytes+r.Bytes-r.OthersBytes
		if first, last := from.Add(bound+countStep), to.Add(-bound-countStep); first.Before(last) && until.After(first) && since.Before(last) {
			c.Packets, c.Bytes = c.Packets+r.Others, c.Bytes+r.OthersBytes
		}
		if since.Sub(reached) > unwatchedGap+bound && gap.IsZero() {
			gap = reached
		}
		if until.After(reached) {
			reached = until
		}
	}
	if to.Sub(reached) > unwatchedGap+bound && gap.IsZero() {
		gap = reached
	}
	if c.Packets == 0 && !gap.IsZero() {
		c.Unknown = fmt.Sprintf("the node did not count from %s on, or its journal is not there", clockTime(gap))
		if x.Role == radio.RoleRelay && x.Ended && !reached.After(from) {
			c.Unknown = "the relay was not observed: its node forwards no packets and cannot tell when trials run, so its part in the run ended with its preparation"
		}
	}
	return c, complete
}
