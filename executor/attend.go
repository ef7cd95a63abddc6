package executor

import "context"

// Attend is a relay's part: it keeps up the relay processes that treatments pass
// there, and its journal holds provenance and clock, and ends when the run is
// finished or aborted.
func Attend(ctx context.Context, cfg Config) error {
	n, state, err := begin(ctx, cfg)
	if n == nil || err != nil {
		return err
	}
	recorded, watched := n.recordStalls(ctx), n.recordInterface(ctx)
	listening, _ := keepListeners(ctx, n, state)
	carrying := carryFor(ctx, n, cfg.TakeAssignments)
	<-ctx.Done()
	listening()
	carrying()
	recorded()
	watched()
	return n.stopped(ctx)
}
