package store

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"

	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
	"linktrial/orchestrator/report"
	"linktrial/orchestrator/store/storedb"
	"linktrial/protocols/contract"
)

// A client sees a refusal, a reset or nothing where the driver of its listener has
// crashed. The journal of the node that the listener is on has the crash, so that the
// attempt gets the reason of what happened where both journals are together.

// crashMargin is added before a crash: a client may learn of it before the listener's
// agent records it.
const crashMargin = time.Second

// crash is a time at which a listener was down because its driver had crashed, by the
// clock of the leading node as tables have it.
type crash struct {
	role      radio.Role
	name      journal.ListenerName
	transfers []string // that it was carrying
	from, to  time.Time
	ended     bool // to is set: it was up again
	text      string
}

// likeCrash are the reasons of attempts that a crash at the other end may explain.
var likeCrash = []string{
	string(contract.CodeConnectRefused), string(contract.CodeConnectTimeout), string(contract.CodeUnreachable),
	string(contract.CodeReset), string(contract.CodeTransferTimeout), journal.ReasonExited,
}

// mayBeCrash reports whether a crash at the other end may explain how an attempt ended.
func mayBeCrash(a *report.Attempt) bool {
	return (a.Verdict == journal.Failed || a.Verdict == journal.TimedOut) && slices.Contains(likeCrash, a.Reason) ||
		a.Verdict == journal.Invalid && a.Reason == journal.ReasonUndetermined
}

// NameCrashes gives those attempts of a run that failed because the driver of a
// listener had crashed the reason [journal.ReasonCrashed].
func NameCrashes(ctx context.Context, c Conn, r *report.Run) error {
	return nameCrashes(ctx, c.q, r)
}

func nameCrashes(ctx context.Context, q *storedb.Queries, r *report.Run) error {
	var some []*report.Trial
	for i := range r.Trials {
		if slices.ContainsFunc(r.Trials[i].Attempts, func(a report.Attempt) bool { return mayBeCrash(&a) }) {
			some = append(some, &r.Trials[i])
		}
	}
	if len(some) == 0 {
		return nil
	}
	found, err := readCrashes(ctx, q, r.ID)
	if err != nil || len(found) == 0 {
		return err
	}
	for _, t := range some {
		for i := range t.Attempts {
			nameCrash(r, t.Index, &t.Attempts[i], found)
		}
		t.Verdict = OfTrial(t.Verdict, t.Attempts)
	}
	return nil
}

func nameCrash(r *report.Run, trial int, a *report.Attempt, found []crash) {
	if !mayBeCrash(a) {
		return
	}
	i := slices.IndexFunc(found, func(c crash) bool { return c.explains(r, trial, a) })
	if i < 0 {
		return
	}
	was := fmt.Sprintf("%s (%s)", a.Verdict, a.Reason)
	if a.Message != "" {
		was += ": " + a.Message
	}
	a.Verdict, a.Reason, a.Message = journal.Failed, journal.ReasonCrashed, found[i].text+"; the client's journal says: "+was
}

// explains reports whether the listener was carrying a transfer of an attempt when it
// crashed, or the attempt needs the listener and overlaps the time until it was up again.
func (c *crash) explains(r *report.Run, trial int, a *report.Attempt) bool {
	of := &r.Sheet.Trials[trial]
	for i := range of.Carried() {
		if slices.Contains(c.transfers, runsheet.TransferID(r.ID, trial, a.Attempt, i).String()) {
			return true
		}
	}
	if a.Started.Add(a.Duration).Before(c.from) || c.ended && a.Started.After(c.to) {
		return false
	}
	return slices.ContainsFunc(r.Sheet.Needs(of, c.role), func(l runsheet.Listener) bool {
		return c.name == journal.ListenerName{Treatment: l.Treatment.Name, At: l.At()}
	})
}

// readCrashes are those of a run's listeners, in the order of their records.
func readCrashes(ctx context.Context, q *storedb.Queries, run string) ([]crash, error) {
	records, err := q.OutageRecords(ctx, run)
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(records, func(r storedb.OutageRecordsRow) bool { return r.Type == string(journal.TypeListenerFailed) }) {
		return nil, nil
	}
	rows, err := q.ClockOffsets(ctx, run)
	if err != nil {
		return nil, err
	}
	nodes, err := q.RunNodes(ctx, run)
	if err != nil {
		return nil, err
	}
	clocks := NodeClocks(rows)
	var leader Clock
	for i := range nodes {
		if nodes[i].Role == string(radio.RoleClient) {
			leader = clocks[nodes[i].Node].Stored(math.MaxInt64)
		}
	}
	return crashes(records, clocks, leader), nil
}

func crashes(records []storedb.OutageRecordsRow, clocks map[string]*NodeClock, leader Clock) []crash {
	type key struct {
		node string
		name journal.ListenerName
	}
	var out []crash
	last := map[key]int{} // of out
	for i := range records {
		r := &records[i]
		failed := r.Type == string(journal.TypeListenerFailed)
		if !failed && r.Type != string(journal.TypeListenerReady) {
			continue
		}
		var l journal.Listener
		if json.Unmarshal(r.Body, &l) != nil {
			continue
		}
		c, k := clocks[r.Node].Recorded(r.Seq), key{r.Node, l.Name()}
		at, bound := r.At.Add(c.Offset-leader.Offset), c.Bound+leader.Bound
		if n, down := last[k]; down && !failed {
			out[n].to, out[n].ended = at.Add(bound), true
			delete(last, k)
		}
		if failed && l.Crashed {
			what := "the listener of " + l.Treatment
			if l.At != "" {
				what = "the relay process of " + l.Treatment
			}
			last[k] = len(out)
			out = append(out, crash{role: radio.Role(r.Role), name: l.Name(), transfers: l.Transfers, from: at.Add(-bound - crashMargin),
				text: fmt.Sprintf("%s at the %s crashed: %s", what, r.Role, l.Message)})
		}
	}
	return out
}
