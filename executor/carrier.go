package executor

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"linktrial/executor/journal"
)

// carrier implements [Carrier].
type carrier struct{ node *node }

func (c *carrier) Check(a FlowAssignment) error {
	n := c.node
	switch {
	case a.Run != n.RunID || a.SheetHash != n.SheetHash:
		return fmt.Errorf("the assignment is for run %s with sheet %s, this node is in run %s with sheet %s", a.Run, a.SheetHash, n.RunID, n.SheetHash)
	case a.Trial < 0 || a.Trial >= len(n.sheet.Trials) || a.Attempt < 1:
		return fmt.Errorf("the assignment is for attempt %d of trial %d, the sheet has %d trials", a.Attempt, a.Trial, len(n.sheet.Trials))
	case !slices.Contains(rolesOfTrial(n.sheet, &n.sheet.Trials[a.Trial]), n.Role):
		return fmt.Errorf("no flow of trial %d starts or ends on the %s or passes a relay process there", a.Trial, n.Role)
	}
	return nil
}

func (c *carrier) Await(ctx context.Context, a FlowAssignment) error {
	return c.node.awaitListeners(ctx, &c.node.sheet.Trials[a.Trial])
}

func (c *carrier) Watch(a FlowAssignment) func(context.Context, <-chan struct{}) Outage {
	return c.node.watch(&c.node.sheet.Trials[a.Trial])
}

func (c *carrier) Prepare(ctx context.Context, a FlowAssignment) (release func()) {
	return prepareDrivers(ctx, c.node, c.flows(a))
}

func (c *carrier) Carry(ctx context.Context, a FlowAssignment, began time.Time) []FlowOutcome {
	flows := c.flows(a)
	before, timed := c.node.count(), c.node.timePackets(flows)
	runAll(ctx, flows, began)
	c.node.holdCounters(ctx, flows, before)
	timed()
	out := make([]FlowOutcome, len(flows))
	for i, f := range flows {
		out[i] = FlowOutcome{Result: f.result, Breaches: f.breaches, Ready: f.ready, Exited: f.exited, Connected: f.seen.Connected}
		if f.result.Verdict != journal.Succeeded || len(f.breaches) > 0 {
			out[i].Log = tail(f.log, MaxLog/len(flows))
		}
	}
	return out
}

func (c *carrier) Sync() { c.node.record.syncNow() }

// flows are this node's of an assignment.
func (c *carrier) flows(a FlowAssignment) []*flow {
	own, _ := split(newFlows(c.node, a.Trial, a.Attempt), c.node.Role)
	return own
}

// carryFor takes the leading node's assignments until ctx ends; the returned
// function waits for that end.
func carryFor(ctx context.Context, n *node) (wait func()) {
	var running sync.WaitGroup
	if n.TakeAssignments != nil {
		running.Go(func() { n.TakeAssignments(ctx, &carrier{n}) })
	}
	return running.Wait
}
