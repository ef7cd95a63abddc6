package campaign

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"linktrial/executor/journal"
	"linktrial/internal/radio"
	"linktrial/orchestrator/report"
	"linktrial/orchestrator/store"
	"linktrial/orchestrator/store/dbsqlc"
)

// With in-band control every node counts the packets between it and the orchestrator.
// The leading node knows attempts and decides about its own; of the other nodes, whose
// counts are by time, it is decided here which attempts they met.

// countedNode is what a node that does not lead counted, as far as it was delivered.
type countedNode struct {
	role    radio.Role
	absent  bool            // no node of the role takes part in the run
	records []countedRecord // in order
	ended   bool            // its part in the run: no more follow
}

// countedRecord is what was counted in a time by the orchestrator's clock, within a bound.
type countedRecord struct {
	since, until time.Time
	bound        time.Duration
	journal.ControlTraffic
}

// judgeControl adds to the ended attempts of an open run what control traffic they met,
// and marks those that met some, once it is known of all nodes or, where last is set, will
// not be.
func (e *Engine) judgeControl(ctx context.Context, run, hash string, last bool) error {
	info, err := e.sheetOf(ctx, run, hash)
	if err != nil || !info.inBand {
		return err
	}
	n, err := e.cfg.Store.ControlCounted(ctx, run)
	if err != nil || n == info.controlSeen && !last {
		return err
	}
	attempts, err := e.cfg.Store.ControlUndecided(ctx, dbsqlc.ControlUndecidedParams{RunID: run, Self: journal.Self, AllOfThem: last})
	if err != nil {
		return err
	}
	others, leader, err := e.countedNodes(ctx, run, info.roles)
	if err != nil {
		return err
	}
	for i := range attempts {
		if err := e.settleControl(ctx, run, &attempts[i], others, leader, last); err != nil {
			return err
		}
	}
	info.controlSeen = n
	return nil
}

// countedNodes are the run's nodes but the leading one, in the order of roles, those of
// which no agent takes part among them, and the leading node's clock.
func (e *Engine) countedNodes(ctx context.Context, run string, roles []radio.Role) ([]countedNode, store.Clock, error) {
	nodes, err := e.cfg.Store.RunNodes(ctx, run)
	if err != nil {
		return nil, store.Clock{}, err
	}
	rows, err := e.cfg.Store.ControlRecords(ctx, run)
	if err != nil {
		return nil, store.Clock{}, err
	}
	clocks, leads, err := e.clocks(ctx, run) // after the records: it has all steps before them
	if err != nil {
		return nil, store.Clock{}, err
	}
	var out []countedNode
	for _, n := range nodes {
		if radio.Role(n.Role) == leader {
			continue
		}
		x := countedNode{role: radio.Role(n.Role), ended: n.Ended != nil}
		for _, r := range rows {
			var c journal.ControlCounted
			if r.Node == n.Node && json.Unmarshal(r.Body, &c) == nil { // checked when it was stored
				at := clocks[n.Node].Recorded(r.Seq)
				x.records = append(x.records, countedRecord{c.Since.Add(at.Offset), c.Until.Add(at.Offset), at.Bound, c.ControlTraffic})
			}
		}
		out = append(out, x)
	}
	for _, role := range roles {
		if role != leader && !slices.ContainsFunc(out, func(x countedNode) bool { return x.role == role }) {
			out = append(out, countedNode{role: role, absent: true, ended: true})
		}
	}
	slices.SortFunc(out, func(a, b countedNode) int {
		return slices.Index(radio.Roles, a.role) - slices.Index(radio.Roles, b.role)
	})
	return out, leads, nil
}

// settleControl decides about one attempt, unless a node's count of it may still come.
func (e *Engine) settleControl(ctx context.Context, run string, a *dbsqlc.ControlUndecidedRow, others []countedNode, l store.Clock, last bool) error {
	own := report.ControlCount{Role: leader}
	if a.Control == "" {
		own.Unknown = "the node's agent could not count them (its log says why)"
	} else if err := json.Unmarshal([]byte(a.Control), &own); err != nil {
		return fmt.Errorf("trial %d, attempt %d: control: %w", a.Trial, a.Attempt, err)
	}
	counts, met := []report.ControlCount{own}, ""
	from := a.StartedAt.Add(l.Offset)
	for i := range others {
		x := &others[i]
		c, complete := x.during(from, from.Add(time.Duration(a.DurationNs)), l.Bound)
		if !complete && !last {
			return nil
		}
		counts = append(counts, c)
		if c.Packets > 0 && met == "" {
			met = fmt.Sprintf("%d control packets with %d B passed at the %s, of which an attempt with in-band control has none", c.Packets, c.Bytes, x.role)
		}
	}
	if met != "" && a.Counts {
		ended := a.Reason
		if ended == "" {
			ended = "a result"
		}
		if err := e.excuse(ctx, run, excused{int(a.Trial), int(a.Attempt), a.Last, a.Marks}, met+fmt.Sprintf(" (the attempt had ended with %s)", ended)); err != nil {
			return err
		}
	}
	encoded, err := json.Marshal(counts)
	if err != nil {
		return err
	}
	return e.cfg.Store.SetControl(ctx, dbsqlc.SetControlParams{RunID: run, Trial: a.Trial, Attempt: a.Attempt, Control: encoded})
}

// countStep is how closely in time a node that does not lead knows when a packet passed.
const countStep = 100 * time.Millisecond

// during is what the node counted in a time by the orchestrator's clock; complete: it has
// delivered its counts until the end of that time. Packets between the node itself and the
// orchestrator are counted where they may have passed in that time. Those of other nodes
// are counted there, too, and the leading node calls right before and after its attempts:
// so of these only what is certain to have passed in that time.
func (x *countedNode) during(from, to time.Time, bound time.Duration) (c report.ControlCount, complete bool) {
	c.Role = x.role
	if x.absent {
		c.Unknown = fmt.Sprintf("no node takes part in the run as the %s, so what passed there was not observed", x.role)
		return c, true
	}
	leads := bound
	reached, gap := from, time.Time{}
	complete = x.ended
	for i := range x.records {
		r := &x.records[i]
		since, until := r.since, r.until
		bound = leads + r.bound
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
		if x.role == radio.RoleRelay && x.ended && !reached.After(from) {
			c.Unknown = "the relay was not observed: its node forwards no packets and cannot tell when trials run, so its part in the run ended with its preparation"
		}
	}
	return c, complete
}
