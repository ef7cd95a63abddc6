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
	// Committed is how many records are stored.
	Committed() int64
	// Settled reports whether the open window has no more to wait for: all durable
	// records are stored, or those that are left take longer than the window lasts.
	Settled() bool
	// Await waits until all durable records are stored; false: ctx ended first.
	Await(ctx context.Context) bool
}

// maxWindow is how far the leading agent's windows grow while no answer arrives
// in them: over a slow radio an answer may take several round trips, and a
// window that is too short would never bring a command.
const maxWindow = time.Minute

// maxQuiet is for how long no control packet must have passed at most.
const maxQuiet = 3 * time.Second

// How often a leading agent looks whether control packets still pass, and for how long.
const (
	quietStep  = 10 * time.Millisecond
	quietLimit = 10 * time.Second
)

// prepareTime is how long the other nodes may take, from when the orchestrator knows them
// to be prepared, to suspend their calls and to count no more of them.
const prepareTime = 2 * (preparedStep + countStep)

// Leader is the leading agent's policy.
type Leader struct {
	executor.NopObserver
	gate     *Gate
	delivery Delivery
	first    time.Duration // length of the first window
	window   time.Duration // how long the next one may wait for an answer
	share    float64       // of the time of trials that windows may take
	credit   time.Duration // time that windows may take now
	closed   time.Time     // when the last window had ended, or the first trial began
	resume   func()        // takes the run's suspension back, at most once
	control  executor.ControlCounter
}

// NewLeader returns the policy of one run. Its windows are of the given length at first,
// and take no more than this share of the time between them. control counts what passes;
// nil: nothing does.
func NewLeader(g *Gate, d Delivery, window time.Duration, share float64, control executor.ControlCounter) *Leader {
	return &Leader{gate: g, delivery: d, first: window, window: window, share: share, credit: window, resume: func() {}, control: control}
}

// Leading implements [executor.Observer].
func (l *Leader) Leading(ctx context.Context) {
	s := l.gate.Suspend()
	l.resume = sync.OnceFunc(l.gate.Resume)
	l.awaitQuiet(ctx, max(l.quiet(s), prepareTime))
	l.closed = time.Now()
}

// Boundary implements [executor.Observer].
func (l *Leader) Boundary(ctx context.Context) {
	began := time.Now()
	l.credit += time.Duration(l.share * float64(began.Sub(l.closed)))
	l.closed = began
	if l.credit < l.window {
		return // an answer is not to be expected in time: the next boundary has more
	}
	committed := l.delivery.Committed()
	w := l.gate.Window(ctx, l.window, l.credit, l.delivery.Settled)
	l.awaitQuiet(ctx, l.quiet(w.Suspended))
	l.closed = time.Now()
	l.credit -= l.closed.Sub(began) // below 0 where the wait for quiet took longer than the window
	if !w.Answered || !l.delivery.CaughtUp() && l.delivery.Committed() == committed {
		// It was too short for an answer, or for any record.
		l.window = max(l.window, min(2*l.window, maxWindow))
	}
}

// packetRoundTrips is how many round trips a large packet takes at most to pass the link: a
// round trip has two packets of 40 bytes, of headers alone, at least, and a large packet
// 1500 bytes.
const packetRoundTrips = 1500 / (2 * 40)

// quiet is for how long no control packet must have passed before the next trial. Also
// where every call had its answer, an acknowledgement may be on its way.
func (l *Leader) quiet(s Suspended) time.Duration {
	switch {
	case !s.Ended:
		return min(s.Late, maxQuiet)
	case s.Late == 0: // no connection is left that could tell
		return maxQuiet
	}
	// The orchestrator may not have begun its answer, or the link may have several packets
	// of it in its queue: they arrive one after the other.
	return min(max((1+packetRoundTrips)*s.Late, l.window), maxQuiet)
}

// awaitQuiet waits until no control packet has passed for so long: what arrives over a
// slow radio when the next trial runs would make its attempt invalid.
func (l *Leader) awaitQuiet(ctx context.Context, quiet time.Duration) {
	if l.control == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, quietLimit)
	defer cancel()
	for last := time.Now(); time.Since(last) < quiet && backoff.Sleep(ctx, quietStep); {
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
func (l *Leader) Paused(ctx context.Context) (resumed func(over bool)) {
	l.gate.Resume()
	return func(over bool) {
		if over { // no trial follows that calls could disturb
			l.resume = func() {}
			return
		}
		// The orchestrator should know what was applied before the next trial.
		wctx, cancel := context.WithTimeout(ctx, l.first)
		defer cancel()
		l.delivery.Await(wctx)
		q := l.quiet(l.gate.Suspend())
		// What ended the pause may have come from a window of another node that is open.
		backoff.Sleep(ctx, followerWindow)
		l.awaitQuiet(ctx, q)
		l.closed = time.Now() // a pause is no time of trials
	}
}

// Closing implements [executor.Observer].
func (l *Leader) Closing(context.Context) { l.End() }

// End resumes calls, at the latest when the run has ended in whatever way.
func (l *Leader) End() { l.resume() }
