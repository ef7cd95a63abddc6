package silence

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"linktrial/internal/notify"
)

// Gate lets calls to the orchestrator pass or holds them back. Suspensions are
// counted: calls pass when each has been resumed. Its methods may be called from
// several goroutines.
type Gate struct {
	cut func() // ends all connections

	mu          sync.Mutex
	suspensions int
	calls       map[*call]struct{}
	changed     notify.Notifier

	inWindow atomic.Bool
	answers  atomic.Int64 // of the orchestrator, so far
}

type call struct{ cancel context.CancelFunc }

// NewGate returns an open gate. cut is called when calls are suspended and none
// is under way: it ends the connections that carried them.
func NewGate(cut func()) *Gate {
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

// Suspend ends all calls and connections and holds further calls back until
// [Gate.Resume]. When it returns, nothing more is sent, and nothing arrives but
// what was on its way. It waits for the calls under way to return.
func (g *Gate) Suspend() {
	g.mu.Lock()
	g.suspensions++
	g.changed.Notify()
	for len(g.calls) > 0 {
		for c := range g.calls {
			c.cancel()
		}
		changed := g.changed.Changed()
		g.mu.Unlock()
		<-changed
		g.mu.Lock()
	}
	g.mu.Unlock()
	g.cut()
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
func (g *Gate) Unrestricted() bool { return !g.Suspended() && !g.InWindow() }

// InWindow reports whether a [Gate.Window] is open, so that calls must be brief.
func (g *Gate) InWindow() bool { return g.inWindow.Load() }

// Answered takes note that the orchestrator answered a poll. Where the poll was
// made in a window, which then has what it waited for, it returns when the next
// one is due: at the window's end at the latest, or when ctx ends.
func (g *Gate) Answered(ctx context.Context, inWindow bool) {
	g.answers.Add(1)
	if !inWindow {
		return
	}
	g.mu.Lock()
	suspended, changed := g.suspensions > 0, g.changed.Changed()
	g.mu.Unlock()
	if suspended {
		return // the next call waits for Resume
	}
	select {
	case <-changed:
	case <-ctx.Done():
	}
}

// windowStep is how often an open window looks whether it has what it waits for.
const windowStep = 2 * time.Millisecond

// Window interrupts a suspension for at most d: until the orchestrator has
// answered a poll and done returns true, or until ctx ends. It reports whether
// the orchestrator answered.
func (g *Gate) Window(ctx context.Context, d time.Duration, done func() bool) (answered bool) {
	before := g.answers.Load()
	g.inWindow.Store(true)
	g.Resume()
	end := time.NewTimer(d)
	defer end.Stop()
	for open := true; open; {
		select {
		case <-end.C:
			open = false
		case <-ctx.Done():
			open = false
		case <-time.After(windowStep):
			open = g.answers.Load() == before || !done()
		}
	}
	g.Suspend()
	g.inWindow.Store(false)
	return g.answers.Load() != before
}
