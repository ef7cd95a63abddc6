package silence

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"linktrial/executor/journal"
)

// echoes are the control packets that pass after each window, for so long.
type echoes struct {
	gate   *Gate
	last   time.Duration
	window int64
	until  time.Time
}

// Take implements [executor.ControlCounter].
func (e *echoes) Take() (c journal.ControlTraffic, _ error) {
	e.gate.mu.Lock()
	defer e.gate.mu.Unlock()
	if e.gate.windows != e.window {
		e.window, e.until = e.gate.windows, time.Now().Add(e.last)
	}
	if time.Now().Before(e.until) {
		c.Packets++
	}
	return c, nil
}

// shared is a delivery over a radio on which nothing is free: each window brings an
// answer after some time, and goes on for as long as it may.
type shared struct {
	*session
	stored int64 // with each look a record more
}

func (*shared) CaughtUp() bool { return false }
func (*shared) Settled() bool  { return false }
func (d *shared) Committed() int64 {
	d.stored++
	return d.stored
}

// Windows take no more of the trials' time than the plan allows, whatever is left to
// deliver; a trial that is too short for a window is followed by none, and the next has
// more.
func TestWindowsTakeTheirShare(t *testing.T) {
	for _, tt := range []struct {
		name    string
		share   float64
		trial   time.Duration
		late    time.Duration
		windows int // of 40 boundaries, at least
	}{
		{"long trials", 0.1, 30 * time.Second, 0, 39},
		{"short trials", 0.1, time.Second, 0, 13},
		{"half of the time", 0.5, time.Second, 0, 39},
		{"a hundredth", 0.01, 4 * time.Second, 0, 5},
		{"packets are late", 0.1, 2 * time.Second, time.Second, 5},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSession(50 * time.Millisecond)
				ctx, cancel := context.WithCancel(t.Context())
				var running sync.WaitGroup
				running.Go(func() { s.run(ctx) })
				s.late = 20 * time.Millisecond
				l := NewLeader(s.gate, &shared{session: s}, 200*time.Millisecond, tt.share, &echoes{gate: s.gate, last: tt.late})
				l.Leading(ctx)
				var trials, windows time.Duration
				opened := 0
				for range 40 {
					time.Sleep(tt.trial)
					trials += tt.trial
					began := time.Now()
					l.Boundary(ctx)
					if d := time.Since(began); d > 0 {
						opened++
						windows += d
					}
				}
				last := 200*time.Millisecond + tt.late + l.quiet(Suspended{Ended: true, Late: s.late}) // may take more, and the next less
				if most := time.Duration(tt.share*float64(trials)) + last; windows > most {
					t.Errorf("windows took %s of trials that took %s, expected at most %s", windows, trials, most)
				}
				if opened < tt.windows {
					t.Errorf("%d windows, expected %d at least", opened, tt.windows)
				}
				l.End()
				cancel()
				running.Wait()
			})
		})
	}
}
