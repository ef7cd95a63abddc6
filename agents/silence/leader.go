package silence

import (
	"context"
	"sync"
	"time"

	"linktrial/executor"
)

// Delivery is the delivery of the run's journal to the orchestrator.
type Delivery interface {
	// CaughtUp reports whether all durable records are stored.
	CaughtUp() bool
	// Await waits until all durable records are stored; false: ctx ended first.
	Await(ctx context.Context) bool
}

// maxWindow is how far the leading agent's windows grow while no answer arrives
// in them: over a slow radio an answer may take several round trips, and a
// window that is too short would never bring a command.
const maxWindow = 3 * time.Second

// Leader is the leading agent's policy.
type Leader struct {
	executor.NopObserver
	gate     *Gate
	delivery Delivery
	first    time.Duration // length of the first window
	window   time.Duration // length of the next
	resume   func()        // takes the run's suspension back, at most once
}

// NewLeader returns the policy of one run. Its windows are of the given length
// at first.
func NewLeader(g *Gate, d Delivery, window time.Duration) *Leader {
	return &Leader{gate: g, delivery: d, first: window, window: window, resume: func() {}}
}

// Leading implements [executor.Observer].
func (l *Leader) Leading(context.Context) {
	l.gate.Suspend()
	l.resume = sync.OnceFunc(l.gate.Resume)
}

// Boundary implements [executor.Observer].
func (l *Leader) Boundary(ctx context.Context) {
	if !l.gate.Window(ctx, l.window, l.delivery.CaughtUp) {
		l.window = max(l.window, min(2*l.window, maxWindow))
	}
}

// Paused implements [executor.Observer]. In a pause nothing runs on the radio,
// and the command to resume must arrive.
func (l *Leader) Paused(ctx context.Context) (resumed func()) {
	l.gate.Resume()
	return func() {
		// The orchestrator should know what was applied before the next trial.
		ctx, cancel := context.WithTimeout(ctx, l.first)
		defer cancel()
		l.delivery.Await(ctx)
		l.gate.Suspend()
	}
}

// Closing implements [executor.Observer].
func (l *Leader) Closing(context.Context) { l.End() }

// End resumes calls, at the latest when the run has ended in whatever way.
func (l *Leader) End() { l.resume() }
