package executor

import (
	"context"
	"sync"
)

// Serve keeps a listener up for every treatment of the sheet until ctx is
// cancelled with [ErrFinish] or an [AbortError] as its cause, and returns nil
// then, or until it is interrupted, and returns the cause. Each listener's
// readiness or failure is in the journal, durable, as soon as it is known.
func Serve(ctx context.Context, cfg Config) error {
	n, state, err := begin(ctx, cfg)
	if n == nil || err != nil {
		return err
	}
	transfers := newTransferTable(n.runID, n.sheet, n.observer)
	var running sync.WaitGroup
	for i := range n.sheet.Treatments {
		t := &n.sheet.Treatments[i]
		if t.Missing != "" {
			continue
		}
		l := &listener{node: n, transfers: transfers, treatment: t, restarts: state.Restarts[t.Name]}
		running.Go(func() { l.keep(ctx) })
	}
	carrying := carryFor(ctx, n, cfg.TakeAssignments)
	running.Wait()
	carrying()
	<-ctx.Done() // every listener may have given up
	return n.stopped(ctx)
}
