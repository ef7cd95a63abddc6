package campaign

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"linktrial/executor/journal"
	"linktrial/internal/runcommand"
	"linktrial/orchestrator/campaign/campaigndb"
	"linktrial/orchestrator/judge"
	"linktrial/orchestrator/store"
)

// ended is what is done about the attempts of an open run that have ended, in this order.
// Each step reads its facts from the store, has them judged, and stores what was decided;
// it is asked again and again, and nothing is decided twice. last: the run ends now, and
// what is not known of its attempts will not be.
var ended = []struct {
	what string
	step func(e *Engine, ctx context.Context, r *run, last bool) error
}{
	{"outages", (*Engine).judgeOutages},
	{"control traffic", (*Engine).judgeControl},
	{"rules of validity", (*Engine).judgeValidity},
}

func (e *Engine) attemptsEnded(ctx context.Context, r *run, last bool) error {
	for _, x := range ended {
		if err := x.step(e, ctx, r, last); err != nil {
			return fmt.Errorf("run %s: %s: %w", r.id, x.what, err)
		}
	}
	return nil
}

// mark stores the marks that the judge gives, and has trials repeated. A person can
// withdraw such a mark as any other one.
func (e *Engine) mark(ctx context.Context, run string, marks ...*judge.Mark) error {
	for _, m := range marks {
		if err := e.MarkAttempt(ctx, run, Mark{Trial: m.Trial, Attempt: m.Attempt, Invalid: true, Reason: m.Reason, By: journal.Self}); err != nil {
			return err
		}
		if !m.Repeat || e.judgesOnly {
			continue
		}
		err := e.Submit(ctx, run, Command{Kind: runcommand.Repeat, Trial: m.Trial, By: journal.Self})
		if errors.Is(err, ErrRefused) { // the run is over
			e.cfg.Logger.Warn("a trial whose attempt says nothing of the protocol cannot be repeated", "run", run, "trial", m.Trial, "reason", err)
			continue
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// judgeOutages marks the attempts that met an outage.
func (e *Engine) judgeOutages(ctx context.Context, r *run, _ bool) error {
	rows, err := e.cfg.Store.OutageRecords(ctx, r.id)
	// Most runs have only listeners that became ready, and this is asked again and again.
	other := func(x store.OutageRecordsRow) bool { return x.Type != string(journal.TypeListenerReady) }
	if err != nil || !slices.ContainsFunc(rows, other) {
		return err
	}
	clocks, leads, err := e.clocks(ctx, r.id)
	if err != nil {
		return err
	}
	found := judge.Outages(r.sheet, outageRecords(rows, clocks))
	for i := range found.All {
		if err := e.judgeStop(ctx, r.id, found, &found.All[i], leads); err != nil {
			return err
		}
	}
	failures, err := e.db.UnexplainedFailures(ctx, campaigndb.UnexplainedFailuresParams{RunID: r.id, Self: journal.Self})
	if err != nil {
		return err
	}
	if err := e.mark(ctx, r.id, found.Failures(attempts(failures, leads))...); err != nil {
		return err
	}
	silent, err := e.db.UnconfirmedSuccesses(ctx, campaigndb.UnconfirmedSuccessesParams{RunID: r.id, Self: journal.Self})
	if err != nil {
		return err
	}
	var unconfirmed []judge.Attempt
	for _, x := range silent {
		unconfirmed = append(unconfirmed, judge.Attempt{Trial: int(x.Trial), Number: int(x.Attempt), Started: x.StartedAt, Lasted: time.Duration(x.DurationNs), Clock: leads, Succeeded: true, Final: x.Final, Last: x.Last, Marks: x.Marks})
	}
	return e.mark(ctx, r.id, found.Unconfirmed(unconfirmed)...)
}

// judgeStop marks the attempts that overlap a time at which something that they needed was
// stopped and went on: also those that succeeded.
func (e *Engine) judgeStop(ctx context.Context, run string, found *judge.OutageList, x *judge.Outage, leads judge.Clock) error {
	if !x.Stopped {
		return nil
	}
	to := x.To
	if to.IsZero() {
		to = e.cfg.Now().Add(time.Hour)
	}
	rows, err := e.db.AttemptsDuring(ctx, campaigndb.AttemptsDuringParams{RunID: run, Self: journal.Self,
		Since: x.From.Add(-leads.Offset - leads.Bound), Until: to.Add(-leads.Offset + leads.Bound)})
	if err != nil {
		return err
	}
	return e.mark(ctx, run, found.DuringStop(x, attempts(rows, leads))...)
}

// attempts are those that ended for or against their protocols.
func attempts[R campaigndb.AttemptsDuringRow | campaigndb.UnexplainedFailuresRow](rows []R, leads judge.Clock) []judge.Attempt {
	out := make([]judge.Attempt, len(rows))
	for i, r := range rows {
		x := campaigndb.AttemptsDuringRow(r)
		out[i] = judge.Attempt{Trial: int(x.Trial), Number: int(x.Attempt), Started: x.StartedAt, Lasted: time.Duration(x.DurationNs), Clock: leads, Reason: x.Reason, Last: x.Last, Marks: x.Marks}
	}
	return out
}

// judgeControl adds to attempts what control traffic they met, and marks those that met
// some, once it is known of all nodes or, where last is set, will not be.
func (e *Engine) judgeControl(ctx context.Context, r *run, last bool) error {
	if !r.inBand {
		return nil
	}
	n, err := e.db.ControlCounted(ctx, r.id)
	if err != nil || n == r.controlSeen && !last {
		return err
	}
	undecided, err := e.db.ControlUndecided(ctx, campaigndb.ControlUndecidedParams{RunID: r.id, Self: journal.Self, AllOfThem: last})
	if err != nil {
		return err
	}
	counters, leads, err := e.counters(ctx, r)
	if err != nil {
		return err
	}
	for i := range undecided {
		if err := e.settleControl(ctx, r.id, &undecided[i], counters, leads, last); err != nil {
			return err
		}
	}
	r.controlSeen = n
	return nil
}

// judgeValidity applies the plan's rules, and holds attempts against what else was on the
// air, once everything is there about them or, where last is set, will not be.
func (e *Engine) judgeValidity(ctx context.Context, r *run, last bool) error {
	if r.sheet.Valid == nil && !r.realRadios {
		return nil // the emulated radios count what is on the air
	}
	rows, err := e.db.UnjudgedAttempts(ctx, campaigndb.UnjudgedAttemptsParams{RunID: r.id, Self: journal.Self})
	if err != nil || len(rows) == 0 {
		return err
	}
	facts, leads, err := e.watchedBy(ctx, r)
	if err != nil || r.sheet.Valid == nil && !facts.Counts() {
		return err
	}
	for _, x := range rows {
		a := &judge.Attempt{Trial: int(x.Trial), Number: int(x.Attempt), Started: x.StartedAt, Lasted: time.Duration(x.DurationNs), Clock: judge.Clock(leads.Stored(x.StartedSeq)),
			Succeeded: x.Verdict == string(journal.Succeeded), Reason: x.Reason, Last: x.Last, Marks: x.Marks}
		if !last && !facts.Complete(a) {
			continue
		}
		if err := e.readAttempt(ctx, r.id, facts, a); err != nil {
			return err
		}
		mark, undecided := facts.Validity(a)
		// A mark comes first: without it the attempt would be looked at again, without the
		// other it would not be.
		if mark != nil && x.Counts {
			if err := e.mark(ctx, r.id, mark); err != nil {
				return err
			}
		}
		if err := e.db.SetUndecided(ctx, campaigndb.SetUndecidedParams{RunID: r.id, Trial: x.Trial, Attempt: x.Attempt, Undecided: undecided}); err != nil {
			return err
		}
	}
	return nil
}
