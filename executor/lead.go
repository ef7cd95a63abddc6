package executor

import (
	"context"

	"linktrial/executor/journal"
)

// Lead goes through the sheet: every trial without a terminal record, in order,
// each attempt after the other. It returns nil when the journal has its
// run-ended record, whether the run was completed, aborted or, in virtual time or
// without commands, stopped for lack of disk space; the cause of the context when it
// was interrupted; and any other error when the journal or the sheet cannot be used,
// [journal.ErrDiskFull] among them.
func Lead(ctx context.Context, cfg Config) error {
	n, state, err := begin(ctx, cfg)
	if n == nil || err != nil {
		return err
	}
	p := &progress{node: n, state: state}
	if err := p.closeInterrupted(); err != nil {
		return err
	}
	// The processes end with the run, which may end without ctx doing so.
	lctx, end := context.WithCancel(ctx)
	recorded, watched := n.recordStalls(lctx), n.recordInterface(lctx)
	defer recorded()
	defer watched()
	listening, known := keepListeners(lctx, n, state)
	defer listening()
	defer end()
	known()
	n.Observer.Leading(ctx)
	if ctx.Err() != nil {
		return n.stopped(ctx)
	}
	e := &emulator{n}
	if err := e.configure(ctx); err != nil {
		if ctx.Err() != nil {
			return n.stopped(ctx)
		}
		return n.end(ctx, journal.RunEnded{End: journal.RunStopped, Reason: clip("emulated radio: " + err.Error())})
	}
	a := &attempts{node: n, emulator: e, paths: newPathCheck(n), prestart: &prestart{node: n}}
	w := &walk{progress: p, attempts: a, waiter: &waiter{progress: p, dead: &a.dead}}
	return w.run(ctx)
}
