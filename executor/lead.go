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
	n.observer.Leading(ctx)
	if ctx.Err() != nil {
		return n.stopped(ctx)
	}
	e := &emulator{radio: cfg.Radio, network: n.sheet.Network, sheet: n.sheet, tolerance: n.tolerance, clock: n.clock, log: n.log}
	if n.host != nil {
		e.tolerateLate = TolerableLateness(n.sheet.Network)
	}
	if err := e.configure(ctx); err != nil {
		if ctx.Err() != nil {
			return n.stopped(ctx)
		}
		return n.end(ctx, journal.RunEnded{End: journal.RunStopped, Reason: clip("emulated radio: " + err.Error())})
	}
	w := &walk{
		node: n, state: state, progress: p, commands: &commandReader{commands: cfg.Commands, progress: p},
		attempts: &attempts{node: n, sources: cfg.Sources, emulator: e, captureFile: cfg.CaptureFile, prestart: &prestart{node: n}},

		judgementWait: cfg.JudgementWait,
	}
	return w.run(ctx)
}
