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
	carrying, answering := carryFor(ctx, n, cfg.TakeAssignments), n.answerPaths(ctx, cfg.AnswerPaths)
	listening()
	carrying()
	answering()
	<-ctx.Done() // every listener may have given up
	recorded()
	watched()
	return n.stopped(ctx)
}
