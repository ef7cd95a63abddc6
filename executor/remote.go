package executor

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
)

// assign gives every other node that takes part in a trial its assignment, all at
// once, or none: those on which its flows start, and those that have listeners of it. Without sources what the others have is not known. An error has the
// reason of the attempt's verdict.
func assign(ctx context.Context, n *node, trial *runsheet.Trial, attempt int) (given map[radio.Role]Source, reason string, err error) {
	out := map[radio.Role]Source{}
	if n.Sources == nil {
		return out, "", nil
	}
	a := FlowAssignment{Run: n.RunID, SheetHash: n.SheetHash, Trial: trial.Index, Attempt: attempt}
	ctx, cancel := context.WithTimeout(ctx, min(peerLimit, n.wait()))
	defer cancel()
	var mu sync.Mutex
	var failed error // the first; it cancels the others
	var asking sync.WaitGroup
	for _, role := range rolesOfTrial(n.sheet, trial) {
		if role == n.Role {
			continue
		}
		asking.Go(func() {
			s, err := n.Sources.Prepare(ctx, role, a)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				out[role] = s
			case failed == nil:
				reason, failed = downReason(n.sheet, trial, role), fmt.Errorf("the %s cannot take part in the attempt: %w", role, err)
				cancel()
			}
		})
	}
	asking.Wait()
	if failed != nil {
		closeSources(out)
		return nil, reason, failed
	}
	return out, "", nil
}

func closeSources(sources map[radio.Role]Source) {
	for _, s := range sources {
		_ = s.Close() // a second close, or of a connection that is of no more use
	}
}

// runRemote runs the flows of an attempt that start on another node, and takes
// over their outcomes.
func runRemote(ctx context.Context, n *node, s Source, began time.Time, flows []*flow) {
	limit := n.sheet.Limits.Connect + n.sheet.Limits.Transfer + peerLimit
	last := time.Duration(0)
	for _, f := range flows {
		last = max(last, f.spec.Start)
	}
	cctx, cancel := context.WithTimeout(ctx, last+limit)
	defer cancel()
	outcomes, err := s.Carry(cctx, began)
	for _, o := range outcomes {
		i := slices.IndexFunc(flows, func(f *flow) bool { return f.index == o.Result.Flow && f.id == o.Result.Transfer })
		_, known := severity[o.Result.Verdict]
		if i < 0 || flows[i].decided || !known || o.Result.Verdict == journal.Succeeded && o.Result.Result == nil {
			continue
		}
		flows[i].takeOutcome(ctx, o, began)
	}
	message := "the node did not say what came of the flow"
	if err != nil {
		message = err.Error()
	}
	for _, f := range flows {
		if ctx.Err() != nil {
			f.abort(ctx)
		}
		f.decide(journal.Invalid, journal.ReasonSourceDown, message)
	}
}

// takeOutcome takes over what another node reports of a flow.
func (f *flow) takeOutcome(ctx context.Context, o FlowOutcome, began time.Time) {
	f.breaches, f.log = o.Breaches, o.Log
	f.ready, f.exited = began, f.node.Clock.Now()
	if !o.Ready.IsZero() {
		f.ready = o.Ready
	}
	if !o.Exited.IsZero() {
		f.exited = o.Exited
	}
	f.seen.Connected = o.Connected
	if o.Result.Verdict != journal.Aborted {
		f.decided, f.result = true, o.Result
		return
	}
	// This node knows why: the whole run ended, or that node's part alone.
	f.result.LastSample = o.Result.LastSample
	if ctx.Err() != nil {
		f.abort(ctx)
	} else {
		f.decide(journal.Invalid, journal.ReasonSourceDown, o.Result.Message)
	}
}
