package executor

import "context"

// Observer is told where a node is in its run. Each method may block only as
// long as its context or a bound of its own lets it. Embed [NopObserver] to
// observe only some of it.
type Observer interface {
	// Begun is called when the run's journal has been opened with run-started or
	// run-resumed, before anything else; recorded reports whether the journal
	// has the node's provenance already. An error ends the run on this node.
	Begun(ctx context.Context, recorded bool) error
	// Leading is called on the leading node before the first trial, which begins
	// when it returns: it may wait as long as ctx lasts.
	Leading(ctx context.Context)
	// Boundary is called on the leading node at each trial boundary, when the
	// trial is durable. At the last one it is called only where there are
	// [Commands], of which one may still come.
	Boundary(ctx context.Context)
	// Paused is called on the leading node when a pause begins, in which nothing
	// runs on the radio; resumed, before the next trial starts, or with over, when
	// none follows.
	Paused(ctx context.Context) (resumed func(over bool))
	// Waiting is called on the leading node with why a trial cannot begin or has to be
	// repeated, and with nothing when it is so no longer.
	Waiting(fault string)
	// Transfers is called on the server with the number of transfers under way,
	// whenever one of its listeners reports anything of a transfer.
	Transfers(n int)
	// Closing is called when all is done but the run-ended record.
	Closing(ctx context.Context)
}

// NopObserver is an [Observer] that does nothing.
type NopObserver struct{}

// Begun implements [Observer].
func (NopObserver) Begun(context.Context, bool) error { return nil }

// Leading implements [Observer].
func (NopObserver) Leading(context.Context) {}

// Boundary implements [Observer].
func (NopObserver) Boundary(context.Context) {}

// Paused implements [Observer].
func (NopObserver) Paused(context.Context) (resumed func(over bool)) { return func(bool) {} }

// Waiting implements [Observer].
func (NopObserver) Waiting(string) {}

// Transfers implements [Observer].
func (NopObserver) Transfers(int) {}

// Closing implements [Observer].
func (NopObserver) Closing(context.Context) {}
