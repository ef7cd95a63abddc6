package silence

import (
	"context"
	"sync"
	"time"

	"linktrial/internal/notify"
)

// Gate lets calls to the orchestrator pass or holds them back. Suspensions are
// counted: calls pass when each has been resumed. Its methods may be called from
// several goroutines.
type Gate struct {
	cut func() (late time.Duration) // see [NewGate]

	mu          sync.Mutex
	suspensions int
	calls       map[*call]struct{}
	changed     notify.Notifier

	window   int64     // number of the open window; 0: none is open
	windows  int64     // that were opened so far
	answered bool      // a poll of the open window
	closes   time.Time // when the open window closes at the latest
}

type call struct{ cancel context.CancelFunc }

// NewGate returns an open gate. cut is called when calls are suspended and none
// is under way: it ends the connections that carried them, and returns how long what the
// orchestrator sent on them before it hears of that may take to arrive.
func NewGate(cut func() (late time.Duration)) *Gate {
	return &Gate{cut: cut, calls: map[*call]struct{}{}}
}

// Enter waits until a call may be made, or ctx ends. The returned context ends
// when calls are suspended; leave must be called after the call.
func (g *Gate) Enter(ctx context.Context) (_ context.Context, leave func(), err error) {
	for {
		g.mu.Lock()
		if g.suspensions == 0 {
			c := &call{}
			ctx, c.cancel = context.WithCancel(ctx)
			g.calls[c] = struct{}{}
			g.mu.Unlock()
			return ctx, func() { g.leave(c) }, nil
		}
		changed := g.changed.Changed()
		g.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		}
	}
}

func (g *Gate) leave(c *call) {
	c.cancel()
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.calls, c)
	g.changed.Notify()
}

// Suspended is what a suspension found.
type Suspended struct {
	// Ended: calls were under way, and were ended. Their answers may be on their way.
	Ended bool
	// Late is how long what the orchestrator had sent may take to arrive.
	Late time.Duration
}

// Suspend ends all calls and connections and holds further calls back until
// [Gate.Resume]. When it returns, nothing more is sent, and nothing arrives but
// what was on its way. It waits for the calls under way to return.
func (g *Gate) Suspend() Suspended {
	var s Suspended
	g.mu.Lock()
	g.suspensions++
	g.changed.Notify()
	for len(g.calls) > 0 {
		s.Ended = true
		for c := range g.calls {
			c.cancel()
		}
		changed := g.changed.Changed()
		g.mu.Unlock()
		<-changed
		g.mu.Lock()
	}
	g.mu.Unlock()
	s.Late = g.cut()
	return s
}

// Resume takes one Suspend back.
func (g *Gate) Resume() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.suspensions--
	g.changed.Notify()
}

// Suspended reports whether calls are held back. A call that failed meanwhile
// was ended on purpose.
func (g *Gate) Suspended() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.suspensions > 0
}

// Unrestricted reports whether calls may be made at leisure: none are held back,
// and no window is open.
func (g *Gate) Unrestricted() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.suspensions == 0 && g.window == 0
}

// OpenWindow is the number of the [Gate.Window] that is open, in which calls must be
// brief; 0: none is. It does not change while a call is under way: a window ends all of
// its calls before it closes.
func (g *Gate) OpenWindow() int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.window
}

// Answered takes note that the orchestrator answered a poll, and that the answer was
// acted on. window is that in which the poll was made, 0 where it was made in none. A
// window has then what it waited for, and Answered returns when the next poll is due:
// when this window is closed, or ctx ends.
func (g *Gate) Answered(ctx context.Context, window int64) {
	if window == 0 {
		return
	}
	g.mu.Lock()
	if g.window == window {
		g.answered = true
	}
	g.mu.Unlock()
	// A poll that began now would have its answer in the next trial.
	g.AwaitClosed(ctx, window)
}

// AwaitClosed waits until a window is closed, or ctx ends.
func (g *Gate) AwaitClosed(ctx context.Context, window int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	// Calls that begin and end wake this as well.
	for g.window == window && g.suspensions == 0 && ctx.Err() == nil {
		changed := g.changed.Changed()
		g.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
		}
		g.mu.Lock()
	}
}

// Left is how long the open window will be open at most, and its number; 0: none is open.
func (g *Gate) Left() (d time.Duration, window int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return time.Until(g.closes), g.window
}

// windowStep is how often an open window looks whether it has what it waits for.
const windowStep = 2 * time.Millisecond

// Ending is how a window ended.
type Ending struct {
	Suspended
	Answered bool // the orchestrator answered a poll
}

// Window interrupts a suspension until the orchestrator has answered a poll and done
// returns true, or until ctx ends: for at most unanswered while no answer has come, and
// for at most most.
func (g *Gate) Window(ctx context.Context, unanswered, most time.Duration, done func() bool) Ending {
	began := time.Now()
	g.open(began.Add(most))
	for open := true; open; {
		select {
		case <-ctx.Done():
			open = false
		case <-time.After(min(windowStep, most)):
			spent := time.Since(began)
			answered := g.isAnswered()
			open = spent < most && (answered && !done() || !answered && spent < unanswered)
		}
	}
	s := g.Suspend()
	return Ending{Suspended: s, Answered: g.close()}
}

func (g *Gate) open(closes time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.windows++
	g.window, g.answered, g.closes = g.windows, false, closes
	g.suspensions--
	g.changed.Notify()
}

func (g *Gate) isAnswered() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.answered
}

func (g *Gate) close() (answered bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.window = 0
	return g.answered
}
