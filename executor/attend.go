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
	carrying, answering := carryFor(ctx, n, cfg.TakeAssignments), n.answerPaths(ctx, cfg.AnswerPaths)
	<-ctx.Done()
	listening()
	carrying()
	answering()
	recorded()
	watched()
	return n.stopped(ctx)
}
