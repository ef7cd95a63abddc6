package silence

import (
	"context"
	"sync"
	"time"

	"linktrial/executor"
	"linktrial/internal/backoff"
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

// How often a leading agent looks whether control packets still pass, and for how long.
const (
	quietStep  = 10 * time.Millisecond
	quietLimit = 10 * time.Second
)

// Leader is the leading agent's policy.
type Leader struct {
	executor.NopObserver
	gate     *Gate
	delivery Delivery
	first    time.Duration // length of the first window
	window   time.Duration // length of the next
	resume   func()        // takes the run's suspension back, at most once
	control  executor.ControlCounter
}

// NewLeader returns the policy of one run. Its windows are of the given length
// at first. control counts what passes; nil: nothing does.
func NewLeader(g *Gate, d Delivery, window time.Duration, control executor.ControlCounter) *Leader {
	return &Leader{gate: g, delivery: d, first: window, window: window, resume: func() {}, control: control}
}

// Leading implements [executor.Observer].
func (l *Leader) Leading(ctx context.Context) {
	l.gate.Suspend()
	l.resume = sync.OnceFunc(l.gate.Resume)
	l.awaitQuiet(ctx)
}

// Boundary implements [executor.Observer].
func (l *Leader) Boundary(ctx context.Context) {
	answered := l.gate.Window(ctx, l.window, l.delivery.CaughtUp)
	if !answered || !l.delivery.CaughtUp() { // an answer may be on its way
		l.awaitQuiet(ctx)
	}
	if !answered {
		l.window = max(l.window, min(2*l.window, maxWindow))
	}
}

// awaitQuiet waits until no control packet has passed for as long as a window: answers
// to calls that were ended arrive over a slow radio when the next trial would run, and
// would make its attempt invalid.
func (l *Leader) awaitQuiet(ctx context.Context) {
	if l.control == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, quietLimit)
	defer cancel()
	for last := time.Now(); time.Since(last) < l.window && backoff.Sleep(ctx, quietStep); {
		c, err := l.control.Take()
		if err != nil {
			return // the executor meets the same error, and says so
		}
		if c.Packets > 0 {
			last = time.Now()
		}
	}
}

// Paused implements [executor.Observer]. In a pause nothing runs on the radio,
// and the command to resume must arrive.
func (l *Leader) Paused(ctx context.Context) (resumed func()) {
	l.gate.Resume()
	return func() {
		// The orchestrator should know what was applied before the next trial.
		wctx, cancel := context.WithTimeout(ctx, l.first)
		defer cancel()
		l.delivery.Await(wctx)
		l.gate.Suspend()
		l.awaitQuiet(ctx)
	}
}

// Closing implements [executor.Observer].
func (l *Leader) Closing(context.Context) { l.End() }

// End resumes calls, at the latest when the run has ended in whatever way.
func (l *Leader) End() { l.resume() }
