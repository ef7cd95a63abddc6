package executor

import (
	"context"
	"sync"
	"time"

	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
)

// newFlows are those of an attempt at a trial of the sheet and then its probes, not
// yet decided.
func newFlows(n *node, trial, attempt int) []*flow {
	t := &n.sheet.Trials[trial]
	carried := t.Carried()
	flows := make([]*flow, len(carried))
	for i, spec := range carried {
		id := runsheet.TransferID(n.RunID, trial, attempt, i).String()
		flows[i] = &flow{
			node: n, trial: trial, attempt: attempt, index: i, spec: spec, id: id, probe: i >= len(t.Flows),
			result:  journal.FlowResult{Flow: i, Treatment: spec.Treatment, Transfer: id},
			samples: sampleBatch{record: n.record, clock: n.Clock, head: journal.Samples{Trial: trial, Attempt: attempt, Flow: i, Side: "client"}},
		}
	}
	return flows
}

// severity orders verdicts: an attempt of several flows has the gravest.
var severity = map[journal.Verdict]int{journal.Succeeded: 0, journal.TimedOut: 1, journal.Failed: 2, journal.Invalid: 3, journal.Aborted: 4}

// split takes the flows whose clients run on one role out of others.
func split(flows []*flow, role radio.Role) (there, rest []*flow) {
	for _, f := range flows {
		if f.spec.ClientAt() == role {
			there = append(there, f)
		} else {
			rest = append(rest, f)
		}
	}
	return there, rest
}

// prepareDrivers prepares the drivers of those of the flows that start on this
// node, where the runner can; release frees those that were not started.
func prepareDrivers(ctx context.Context, n *node, flows []*flow) (release func()) {
	runner, ok := n.Runner.(Preparer)
	if !ok {
		return func() {}
	}
	own, _ := split(flows, n.Role)
	releases := make([]func(), len(own))
	var all sync.WaitGroup
	for i, f := range own {
		releases[i] = func() {}
		if ctx.Err() == nil {
			all.Go(func() { releases[i] = runner.Prepare(ctx, n.sheet.Treatment(f.spec.Treatment).Protocol, f.id) })
		}
	}
	all.Wait()
	return func() {
		for _, r := range releases {
			r()
		}
	}
}

// runAll runs flows of one node, each at its own time after the trial's
// beginning, and returns when all have ended.
func runAll(ctx context.Context, flows []*flow, began time.Time) {
	var running sync.WaitGroup
	for _, f := range flows {
		running.Go(func() { f.run(ctx, began) })
	}
	running.Wait()
}

// bulk splits the flows of an attempt from its probes, which follow them.
func bulk(flows []*flow) (transfers, probes []*flow) {
	for i, f := range flows {
		if f.probe {
			return flows[:i], flows[i:]
		}
	}
	return flows, nil
}

// beside lets probes know when the last of the flows that they accompany has its
// outcome; stop says that none will get one any more.
func beside(flows []*flow) (stop func()) {
	transfers, probes := bulk(flows)
	if len(transfers) == 0 || len(probes) == 0 {
		return func() {}
	}
	over := make(chan struct{})
	end := sync.OnceFunc(func() { close(over) })
	var mu sync.Mutex
	left := len(transfers)
	for _, f := range transfers {
		f.onOver = sync.OnceFunc(func() {
			mu.Lock()
			defer mu.Unlock()
			if left--; left == 0 {
				end()
			}
		})
	}
	for _, p := range probes {
		p.load = over
	}
	return end
}
