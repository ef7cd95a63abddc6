package agent

import (
	"context"
	"slices"
	"sync"
	"time"

	"linktrial/executor/journal"
	"linktrial/internal/backoff"
	"linktrial/internal/notify"
	"linktrial/internal/service"
	"linktrial/internal/wallclock"
)

// An agent that was stopped, or whose machine was suspended, starts drivers late and
// reads their events late. It notices afterwards: a goroutine that does nothing but look
// at the clock did not get its turn.
const (
	// stallEvery is how often that goroutine looks.
	stallEvery = 100 * time.Millisecond
	// stallBound is the longest time between two looks that a busy machine explains. On
	// two processors with 8 to 14 programs ready to run, the longest of 14 800 was 0.13 s.
	stallBound = 500 * time.Millisecond
)

// mostStalls is how many stalls are kept, the newest.
const mostStalls = 1000

// stallWatch implements [executor.Stalls].
type stallWatch struct {
	mu      sync.Mutex
	last    time.Duration // when it last looked, since boot
	stalls  []journal.AgentStopped
	changed notify.Notifier
}

// watchStalls watches until stop.
func watchStalls(ctx context.Context) (w *stallWatch, stop func()) {
	w = &stallWatch{last: wallclock.Steady()}
	return w, service.Go(ctx, func(ctx context.Context) {
		for backoff.Sleep(ctx, stallEvery) {
			w.look(wallclock.Steady(), time.Now())
		}
	})
}

// look notes a stall where the look before is too long ago.
func (w *stallWatch) look(boot time.Duration, now time.Time) {
	w.mu.Lock()
	gap := boot - w.last
	w.last = max(w.last, boot)
	stalled := gap > stallBound
	if stalled {
		w.stalls = append(w.stalls, journal.AgentStopped{From: now.Add(-gap).UTC(), To: now.UTC()})
		w.stalls = w.stalls[max(0, len(w.stalls)-mostStalls):]
	}
	w.mu.Unlock()
	if stalled {
		w.changed.Notify()
	}
}

// Since implements [executor.Stalls]. Who asks knows of a stall that has just ended,
// before the goroutine has had its turn.
func (w *stallWatch) Since(at time.Time) (stalls []journal.AgentStopped, more <-chan struct{}) {
	more = w.changed.Changed()
	w.look(wallclock.Steady(), time.Now())
	w.mu.Lock()
	defer w.mu.Unlock()
	first := slices.IndexFunc(w.stalls, func(s journal.AgentStopped) bool { return s.To.After(at) })
	if first < 0 {
		return nil, more
	}
	return slices.Clone(w.stalls[first:]), more
}
