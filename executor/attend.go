package executor

import "context"

// Attend is a relay's part: its journal holds provenance and clock, and ends
// when the run is finished or aborted.
func Attend(ctx context.Context, cfg Config) error {
	n, _, err := begin(ctx, cfg)
	if n == nil || err != nil {
		return err
	}
	carrying := carryFor(ctx, n, cfg.TakeAssignments)
	<-ctx.Done()
	carrying()
	return n.stopped(ctx)
}
