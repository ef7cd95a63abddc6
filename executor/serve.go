package executor

import "context"

// Serve keeps a listener up for every treatment of the sheet, and every relay
// process that treatments pass at the server, until ctx is
// cancelled with [ErrFinish] or an [AbortError] as its cause, and returns nil
// then, or until it is interrupted, and returns the cause. Each listener's
// readiness or failure is in the journal, durable, as soon as it is known.
func Serve(ctx context.Context, cfg Config) error {
	n, state, err := begin(ctx, cfg)
	if n == nil || err != nil {
		return err
	}
	recorded, watched := n.recordStalls(ctx), n.recordInterface(ctx)
	listening, _ := keepListeners(ctx, n, state)
	carrying, answering := carryFor(ctx, n), n.answerPaths(ctx)
	<-ctx.Done() // every listener may have given up before
	listening()
	carrying()
	answering()
	recorded()
	watched()
	return n.stopped(ctx)
}

// Attend is a relay's part, which is [Serve] with the relay processes that treatments
// pass there: its journal holds provenance and clock, and ends when the run is finished
// or aborted.
func Attend(ctx context.Context, cfg Config) error { return Serve(ctx, cfg) }
