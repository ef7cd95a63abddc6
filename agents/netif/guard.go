package netif

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"linktrial/internal/backoff"
	"linktrial/internal/notify"
	"linktrial/internal/service"
)

// askAgain is the pause before a machine that has the radio's address, too, is asked for
// again.
const askAgain = 2 * time.Second

// guard looks for other machines with the radio's address: it asks when the watch begins
// and after each repair of the interface, and hears those that show up meanwhile.
type guard struct {
	radio *Radio
	log   *slog.Logger

	mu      sync.Mutex
	index   int  // of the interface on whose link it asks; 0: on none
	pending bool // it has not asked since it was told of the interface
	refused bool // the agent may not ask
	first   chan struct{}
	known   bool // first is closed
	changed notify.Notifier
}

func newGuard(r *Radio, log *slog.Logger) *guard {
	return &guard{radio: r, log: log, first: make(chan struct{})}
}

// renew has the guard ask anew, on the link of an interface with this state.
func (g *guard) renew(s *State) {
	if g == nil {
		return
	}
	g.mu.Lock()
	g.index = 0
	if s.asks(g.radio) && !g.refused {
		g.index = s.Index
	}
	g.pending = g.index != 0
	g.settle()
	g.mu.Unlock()
	g.changed.Notify()
}

// settle lets go on who waits for the first answer, with the lock.
func (g *guard) settle() {
	if !g.pending && !g.known {
		g.known = true
		close(g.first)
	}
}

// asking reports whether the guard has yet to ask.
func (g *guard) asking() bool {
	if g == nil {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.pending
}

func (g *guard) settled(ctx context.Context) {
	if g == nil {
		return
	}
	select {
	case <-g.first:
	case <-ctx.Done():
	}
}

// done notes that an interface's link was asked, or cannot be.
func (g *guard) done(index int, refused bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.refused = g.refused || refused
	if g.index == index {
		g.pending = false
	}
}

// told lets go on who waits for the first answer, after it was passed on.
func (g *guard) told() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.settle()
}

// keep asks and hears until ctx ends. It calls claimed with the hardware address of
// another machine that has the radio's address, empty where none answered.
func (g *guard) keep(ctx context.Context, claimed func(mac string)) {
	for ctx.Err() == nil {
		changed := g.changed.Changed()
		g.mu.Lock()
		index := g.index
		g.mu.Unlock()
		stop := func() {}
		if index != 0 {
			stop = service.Go(ctx, func(ctx context.Context) { g.hear(ctx, index, claimed) })
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
		stop()
	}
}

// hear returns when ctx ends, or when the agent may not ask.
func (g *guard) hear(ctx context.Context, index int, claimed func(mac string)) {
	for ctx.Err() == nil {
		err := g.hearOnce(ctx, index, claimed)
		if ctx.Err() != nil {
			return
		}
		refused := errors.Is(err, unix.EPERM)
		if refused {
			g.log.Warn("machines that have the radio's address, too, are not looked for", "error", err)
		}
		g.done(index, refused)
		claimed("")
		g.told()
		if refused || !backoff.Sleep(ctx, againAfter) { // else the interface may be down
			return
		}
	}
}

// hearOnce returns when ctx ends, or with an error.
func (g *guard) hearOnce(ctx context.Context, index int, claimed func(mac string)) error {
	l, err := listen(index, g.radio)
	if err != nil {
		return err
	}
	defer l.close()
	for {
		found, err := l.ask(ctx)
		if err != nil {
			return err
		}
		g.done(index, false)
		claimed(found.String())
		g.told()
		if found == nil { // until one shows up
			if found, err = l.next(ctx, time.Time{}); err != nil {
				return err
			}
			g.log.Warn("another machine has the radio's address, too", "mac", found.String())
			claimed(found.String())
		}
		if !backoff.Sleep(ctx, askAgain) {
			return ctx.Err()
		}
	}
}
