package campaign

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
	"linktrial/internal/runcommand"
	"linktrial/orchestrator/store"
	"linktrial/orchestrator/store/dbsqlc"
	"linktrial/protocols/contract"
)

// The leading node cannot know everywhere that a listener of another node was not in
// order when an attempt failed. Where the journals of both are together it is known,
// and decided here: the attempt is marked as invalid, with the reason, and its trial is
// repeated while the run goes on. A person can withdraw such a mark as any other one.

// outageMargin is added at both ends of an outage, beside what the clocks' offsets
// leave open: an agent that is killed cannot record when.
const outageMargin = time.Second

// mostRepeats bounds how often one trial is repeated for outages.
const mostRepeats = 10

// outage is a time at which a listener or an agent was not in order through no fault of
// a driver, by the orchestrator's clock.
type outage struct {
	role     radio.Role
	name     journal.ListenerName // of the listener, unless it is the agent's
	agent    bool                 // the agent did not run
	iface    bool                 // the radio's interface
	forwards bool                 // also what only passes the node: its kernel forwards packets, or should have
	stopped  bool                 // what was not in order went on: figures are false, too
	lasting  bool                 // another attempt would meet it again
	from, to time.Time            // to: zero while it lasts
	why      string
}

// judgeOutages marks the attempts of an open run that failed during an outage.
func (e *Engine) judgeOutages(ctx context.Context, run, hash string) error {
	records, err := e.cfg.Store.OutageRecords(ctx, run)
	// Most runs have only listeners that became ready, and this is asked again and again.
	other := func(r dbsqlc.OutageRecordsRow) bool { return r.Type != string(journal.TypeListenerReady) }
	if err != nil || !slices.ContainsFunc(records, other) {
		return err
	}
	sheet, err := e.cfg.Store.Sheet(ctx, run, hash)
	if err != nil {
		return err
	}
	clocks, leader, err := e.clocks(ctx, run)
	if err != nil {
		return err
	}
	found := outages(sheet, records, clocks)
	if err := e.judgeStops(ctx, run, sheet, found, leader); err != nil {
		return err
	}
	failures, err := e.cfg.Store.UnexplainedFailures(ctx, dbsqlc.UnexplainedFailuresParams{RunID: run, Self: journal.Self})
	if err != nil {
		return err
	}
	for _, f := range failures {
		x := during(sheet, int(f.Trial), f.StartedAt.Add(leader.Offset-leader.Bound), f.StartedAt.Add(time.Duration(f.DurationNs)+leader.Offset+leader.Bound), found)
		if x == nil {
			continue
		}
		reason := fmt.Sprintf("%s (the attempt had ended with %s)", x.why, f.Reason)
		if err := e.excuse(ctx, run, excused{int(f.Trial), int(f.Attempt), f.Last && !x.lasting, f.Marks}, reason); err != nil {
			return err
		}
	}
	return e.judgeUnconfirmed(ctx, run, sheet, found, leader)
}

// judgeUnconfirmed marks the attempts of an open run that succeeded, and that the server
// does not confirm because it was not in order: its listener went on without the agent
// that would have recorded what arrived. Such an attempt would count as failed.
func (e *Engine) judgeUnconfirmed(ctx context.Context, run string, sheet *runsheet.Sheet, found []outage, leader store.Clock) error {
	silent, err := e.cfg.Store.UnconfirmedSuccesses(ctx, dbsqlc.UnconfirmedSuccessesParams{RunID: run, Self: journal.Self})
	if err != nil {
		return err
	}
	for _, a := range silent {
		from, to := a.StartedAt.Add(leader.Offset-leader.Bound), a.StartedAt.Add(time.Duration(a.DurationNs)+leader.Offset+leader.Bound)
		x := during(sheet, int(a.Trial), from, to, found)
		// Until the server has said what comes after the attempt, the confirmation may be
		// under way: the record that ends the outage comes after those of earlier transfers.
		if x == nil || !a.Final && (x.to.IsZero() || to.After(x.to.Add(-outageMargin))) {
			continue
		}
		reason := x.why + " (the attempt had ended with a result that the server did not record)"
		if err := e.excuse(ctx, run, excused{int(a.Trial), int(a.Attempt), a.Last, a.Marks}, reason); err != nil {
			return err
		}
	}
	return nil
}

// judgeStops marks the attempts of an open run that overlap a time at which something
// that they needed was stopped and went on: also those that succeeded.
func (e *Engine) judgeStops(ctx context.Context, run string, sheet *runsheet.Sheet, found []outage, leader store.Clock) error {
	for i := range found {
		x := &found[i]
		if !x.stopped {
			continue
		}
		to := x.to
		if to.IsZero() {
			to = e.cfg.Now().Add(time.Hour)
		}
		overlapping, err := e.cfg.Store.AttemptsDuring(ctx, dbsqlc.AttemptsDuringParams{RunID: run, Self: journal.Self,
			Since: x.from.Add(-leader.Offset - leader.Bound), Until: to.Add(-leader.Offset + leader.Bound)})
		if err != nil {
			return err
		}
		for _, a := range overlapping {
			if int(a.Trial) >= len(sheet.Trials) || !x.concerns(sheet, &sheet.Trials[a.Trial]) {
				continue
			}
			ended := a.Reason
			if ended == "" {
				ended = "a result"
			}
			reason := fmt.Sprintf("%s (the attempt had ended with %s)", x.why, ended)
			if err := e.excuse(ctx, run, excused{int(a.Trial), int(a.Attempt), a.Last, a.Marks}, reason); err != nil {
				return err
			}
		}
	}
	return nil
}

// concerns reports whether a trial needs what was not in order.
func (x *outage) concerns(sheet *runsheet.Sheet, t *runsheet.Trial) bool {
	if x.forwards && sheet.Passes(t, x.role) {
		return true
	}
	if x.iface {
		return sheet.Ends(t, x.role)
	}
	needed := sheet.Needs(t, x.role)
	if x.agent {
		starts := func(f runsheet.Flow) bool { return f.From == x.role }
		return len(needed) > 0 || slices.ContainsFunc(t.Carried(), starts)
	}
	return slices.ContainsFunc(needed, func(l runsheet.Listener) bool { return nameOf(&l) == x.name })
}

// excused is an attempt that says nothing of the protocol.
type excused struct {
	trial, attempt int
	last           bool  // no other attempt of its trial follows by itself
	marks          int64 // that attempts of the trial have from here
}

// excuse marks an attempt, and has its trial repeated where none follows it.
func (e *Engine) excuse(ctx context.Context, run string, a excused, reason string) error {
	if err := e.MarkAttempt(ctx, run, Mark{Trial: a.trial, Attempt: a.attempt, Invalid: true, Reason: reason, By: journal.Self}); err != nil {
		return err
	}
	if !a.last || a.marks >= mostRepeats {
		return nil
	}
	err := e.Submit(ctx, run, Command{Kind: runcommand.Repeat, Trial: a.trial, By: journal.Self})
	if errors.Is(err, ErrRefused) { // the run is over
		e.cfg.Logger.Warn("a trial whose attempt says nothing of the protocol cannot be repeated", "run", run, "trial", a.trial, "reason", err)
		return nil
	}
	return err
}

// clocks are those of a run's nodes, and its leading node's for times that are stored,
// by the comparison that was made last.
func (e *Engine) clocks(ctx context.Context, run string) (byNode map[string]*store.NodeClock, leader store.Clock, err error) {
	rows, err := e.cfg.Store.ClockOffsets(ctx, run)
	if err != nil {
		return nil, leader, err
	}
	byNode = store.NodeClocks(rows)
	nodes, err := e.cfg.Store.RunNodes(ctx, run)
	for _, n := range nodes {
		if n.Role == string(radio.RoleClient) {
			leader = byNode[n.Node].Stored(math.MaxInt64)
		}
	}
	return byNode, leader, err
}

// outages are those that records of nodes tell, in the order of the records.
func outages(sheet *runsheet.Sheet, records []dbsqlc.OutageRecordsRow, clocks map[string]*store.NodeClock) []outage {
	var out []outage
	type key struct {
		node string
		name journal.ListenerName
	}
	down := map[key]outage{}
	type device struct{ node, name string }
	broken := map[device]outage{} // the interfaces of the nodes' radios
	restored := func(d device, at time.Time) {
		if x, ok := broken[d]; ok {
			x.to = at
			out = append(out, x)
			delete(broken, d)
		}
	}
	for i := range records {
		r := &records[i]
		c := clocks[r.Node].Recorded(r.Seq)
		at := r.At.Add(c.Offset)
		begin := func(name journal.ListenerName, from time.Time, why string, lasting bool) {
			if _, already := down[key{r.Node, name}]; !already {
				down[key{r.Node, name}] = outage{role: radio.Role(r.Role), name: name, from: from.Add(-c.Bound - outageMargin), why: why, lasting: lasting}
			}
		}
		if r.Type == string(journal.TypeRunResumed) {
			var b journal.RunStarted
			_ = json.Unmarshal(r.Body, &b) // without a time it is that of the record before
			from := r.Before.Add(clocks[r.Node].Recorded(r.BeforeSeq).Offset)
			if alive := b.Alive.Add(c.Offset); alive.After(from) && alive.Before(at) {
				from = alive
			}
			why := fmt.Sprintf("the agent of the %s was not running from %s to %s", r.Role, clockTime(from), clockTime(at))
			for _, l := range sheet.Listeners(radio.Role(r.Role)) {
				begin(nameOf(&l), from, why, false)
			}
			if b.Forwards { // its node may have had no power meanwhile
				out = append(out, outage{role: radio.Role(r.Role), agent: true, forwards: true, from: from.Add(-c.Bound - outageMargin), to: at.Add(c.Bound + outageMargin), why: why})
			}
			// What is still wrong with an interface the new agent records again.
			for d := range broken {
				if d.node == r.Node {
					restored(d, at.Add(c.Bound))
				}
			}
			continue
		}
		if r.Type == string(journal.TypeAgentStopped) {
			if x, ok := stopOf(r, c); ok {
				out = append(out, x)
			}
			continue
		}
		if r.Type == string(journal.TypeInterfaceFailed) || r.Type == string(journal.TypeInterfaceReady) {
			var b journal.RadioInterface
			_ = json.Unmarshal(r.Body, &b) // checked when it was stored
			d := device{r.Node, b.Device}
			restored(d, at.Add(c.Bound))
			if r.Type == string(journal.TypeInterfaceFailed) {
				broken[d] = outage{role: radio.Role(r.Role), iface: true, forwards: b.Forwards, stopped: true, from: at.Add(-c.Bound),
					why: fmt.Sprintf("the radio's interface %s of the %s was not in order at %s: %s", b.Device, r.Role, clockTime(at), b.Fault)}
			}
			continue
		}
		var l journal.Listener
		if json.Unmarshal(r.Body, &l) != nil {
			continue
		}
		switch {
		case r.Type == string(journal.TypeListenerFailed) && l.Stopped:
			// Its agent runs, and records the moment.
			down[key{r.Node, l.Name()}] = outage{role: radio.Role(r.Role), name: l.Name(), stopped: true, from: at.Add(-c.Bound),
				why: fmt.Sprintf("the listener of %s at the %s was stopped from outside at %s", l.Treatment, r.Role, clockTime(at))}
		case r.Type == string(journal.TypeListenerFailed) && (l.Renewed || l.Outside || l.Code == contract.CodeBadParameters):
			begin(l.Name(), at, fmt.Sprintf("the listener of %s at the %s %s", l.Treatment, r.Role, whyDown(&l, at)), l.Code == contract.CodeBadParameters)
		default: // it is up, or what keeps it down is its driver's fault
			k := key{r.Node, l.Name()}
			if x, ok := down[k]; ok {
				x.to = at.Add(c.Bound)
				if !x.stopped {
					x.to = x.to.Add(outageMargin)
				}
				out = append(out, x)
				delete(down, k)
			}
		}
	}
	for _, x := range down {
		out = append(out, x)
	}
	for _, x := range broken {
		out = append(out, x)
	}
	slices.SortStableFunc(out, func(a, b outage) int { return a.from.Compare(b.from) })
	return out
}

// whyDown says since when a listener is not up through no fault of its protocol.
func whyDown(l *journal.Listener, at time.Time) string {
	switch {
	case l.Renewed:
		return fmt.Sprintf("was started again after %s: %s", clockTime(at), l.Message)
	case l.Code == contract.CodeListenFailed:
		return fmt.Sprintf("was not up at %s: %s", clockTime(at), l.Message)
	case l.Code == contract.CodeBadParameters:
		return fmt.Sprintf("refused its parameters at %s: %s", clockTime(at), l.Message)
	}
	return "was ended from outside at " + clockTime(at)
}

// stopOf is the time at which a node's agent did not run.
func stopOf(r *dbsqlc.OutageRecordsRow, c store.Clock) (outage, bool) {
	var b journal.AgentStopped
	if json.Unmarshal(r.Body, &b) != nil {
		return outage{}, false
	}
	from, to := b.From.Add(c.Offset), b.To.Add(c.Offset)
	return outage{role: radio.Role(r.Role), agent: true, stopped: true, from: from.Add(-c.Bound), to: to.Add(c.Bound),
		why: fmt.Sprintf("the agent of the %s did not run from %s to %s", r.Role, clockTime(from), clockTime(to))}, true
}

// nameOf is a listener's name in journals.
func nameOf(l *runsheet.Listener) journal.ListenerName {
	return journal.ListenerName{Treatment: l.Treatment.Name, At: l.At()}
}

func clockTime(t time.Time) string { return t.UTC().Format("15:04:05.0") + " UTC" }

// during is an outage of a listener that a trial needs, within a time; nil: none.
func during(sheet *runsheet.Sheet, trial int, from, to time.Time, all []outage) *outage {
	if trial >= len(sheet.Trials) {
		return nil
	}
	for i := range all {
		x := &all[i]
		if x.from.After(to) || !x.to.IsZero() && x.to.Before(from) {
			continue
		}
		if x.concerns(sheet, &sheet.Trials[trial]) {
			return x
		}
	}
	return nil
}
