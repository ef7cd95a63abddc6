package silence

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"linktrial/executor"
	"linktrial/executor/journal"
	"linktrial/internal/radio"
)

// never is of a window that waits for more than an answer.
func never() bool { return false }

// testCall is one call of so long through the gate.
func (g *Gate) testCall(ctx context.Context, takes time.Duration) (ended bool) {
	cctx, leave, err := g.Enter(ctx)
	if err != nil {
		return true
	}
	defer leave()
	return !wait(cctx, takes)
}

// A window makes one poll, whatever other calls begin and end in it: a second poll's
// answer would arrive in the next trial.
func TestOnePollAWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSession(20 * time.Millisecond)
		s.gate.Suspend()
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { s.run(ctx) })
		running.Go(func() { // deliveries, each of which wakes whoever waits at the gate
			for ctx.Err() == nil {
				s.gate.testCall(ctx, 3*time.Millisecond)
			}
		})
		for i := range 10 {
			time.Sleep(time.Second)
			if w := s.gate.Window(ctx, 200*time.Millisecond, 200*time.Millisecond, never); !w.Answered {
				t.Errorf("window %d was not answered", i)
			}
		}
		cancel()
		running.Wait()
		s.mu.Lock()
		defer s.mu.Unlock()
		if len(s.calls) != 10 {
			t.Errorf("%d polls in 10 windows", len(s.calls))
		}
	})
}

// A window that ends a call under way says so, also where it had its answer and all was
// delivered when it looked: the answer to that call may be on its way.
func TestWindowTellsOfCallsThatItEnds(t *testing.T) {
	for _, tt := range []struct {
		name  string
		takes time.Duration // of the calls beside the poll
		ended bool
	}{{"none under way", 0, false}, {"a delivery under way", time.Minute, true}} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSession(20 * time.Millisecond)
				s.gate.Suspend()
				ctx, cancel := context.WithCancel(t.Context())
				var running sync.WaitGroup
				running.Go(func() { s.run(ctx) })
				if tt.takes > 0 {
					running.Go(func() {
						for ctx.Err() == nil {
							s.gate.testCall(ctx, tt.takes)
						}
					})
				}
				got := s.gate.Window(ctx, time.Second, time.Second, func() bool { return true })
				if want := (Ending{Suspended{Ended: tt.ended}, true}); got != want {
					t.Errorf("window ended as %+v, expected %+v", got, want)
				}
				cancel()
				running.Wait()
			})
		})
	}
}

// An answer counts for the window in which its poll was made, and for no other: acting
// on it can take until the next window is open, as on a slow disk.
func TestLateAnswerIsNotTheNextWindows(t *testing.T) {
	for _, window := range []string{"of an earlier window", "of no window"} {
		t.Run(window, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := NewGate(func() time.Duration { return 0 })
				number := int64(0)
				if window == "of an earlier window" {
					g.Suspend()
					g.Window(t.Context(), time.Millisecond, time.Millisecond, never)
					number = 1
				} else {
					g.Suspend()
				}
				var w Ending
				done := make(chan struct{})
				go func() {
					defer close(done)
					w = g.Window(t.Context(), time.Second, time.Second, func() bool { return true })
				}()
				synctest.Wait()
				began := time.Now()
				g.Answered(t.Context(), number)
				if d := time.Since(began); d > 0 {
					t.Errorf("the next poll waits %s for a window that is not its own", d)
				}
				<-done
				if w.Answered {
					t.Error("the window counts an answer that is not its own")
				}
			})
		})
	}
}

// A poll that was answered waits for its window to close, not for a context that ended.
func TestAnsweredEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGate(func() time.Duration { return 0 })
		g.Suspend()
		go g.Window(t.Context(), time.Minute, time.Minute, never)
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		g.Answered(ctx, g.OpenWindow())
		if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
			t.Error("returned before its context ended")
		}
		time.Sleep(time.Hour)
	})
}

// air is a radio over which every packet of a call arrives late: those of the
// orchestrator's answers arrive although their calls were ended.
type air struct {
	*session
	delay time.Duration // from an answer's sending to its arrival

	mu       sync.Mutex
	arrivals []time.Time
	taken    time.Time
}

// watch notes for each poll that its answer arrives, whether anybody waits for it.
func (a *air) poll(ctx context.Context) {
	cctx, leave, err := a.gate.Enter(ctx)
	if err != nil {
		return
	}
	window := a.gate.OpenWindow()
	records := a.journal.len()
	a.mu.Lock()
	a.arrivals = append(a.arrivals, time.Now(), time.Now().Add(a.delay))
	a.mu.Unlock()
	answered := wait(cctx, a.delay)
	if answered {
		a.session.mu.Lock()
		a.delivered = records
		a.session.mu.Unlock()
	}
	leave()
	if answered {
		a.gate.Answered(ctx, window)
	}
}

// Take implements [executor.ControlCounter].
func (a *air) Take() (c journal.ControlTraffic, _ error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	for _, at := range a.arrivals {
		if at.After(a.taken) && !at.After(now) {
			c.Packets++
			c.Bytes += 100
		}
	}
	a.taken = now
	return c, nil
}

// Nothing that a window sent or asked for passes in a trial, though answers take longer
// than windows, and deliveries begin and end all the time.
func TestNoAnswerArrivesInATrial(t *testing.T) {
	for _, delay := range []time.Duration{30 * time.Millisecond, 150 * time.Millisecond, 900 * time.Millisecond} {
		t.Run(delay.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := &air{session: newSession(0), delay: delay}
				a.late = delay
				_, sheet := testSheet(t, 28)
				ctx, cancel := context.WithCancel(t.Context())
				var running sync.WaitGroup
				running.Go(func() {
					for ctx.Err() == nil {
						a.poll(ctx)
					}
				})
				running.Go(func() {
					for ctx.Err() == nil {
						a.gate.testCall(ctx, 7*time.Millisecond)
					}
				})
				time.Sleep(time.Second)
				cfg := a.config(sheet, radio.RoleClient, NewLeader(a.gate, a, 200*time.Millisecond, 1, a))
				cfg.Control = a
				if err := executor.Lead(ctx, cfg); err != nil {
					t.Fatal(err)
				}
				cancel()
				running.Wait()
				attempts := a.journal.attempts()
				if len(attempts) != 28 {
					t.Errorf("%d attempts, expected 28 of 28 trials: the others met control packets", len(attempts))
				}
				for i, at := range attempts {
					if slices.ContainsFunc(a.arrivals, func(p time.Time) bool { return p.After(at.from) && p.Before(at.to) }) {
						t.Errorf("a control packet in attempt %d", i)
					}
				}
			})
		})
	}
}

// The first trial begins when the other nodes have ended the calls of their preparation,
// and one after a pause when a window of theirs that may be open is over.
func TestLeaderWaitsForOtherNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &air{session: newSession(0)}
		l := NewLeader(a.gate, a, 200*time.Millisecond, 1, a)
		began := time.Now()
		l.Leading(t.Context())
		if d := time.Since(began); d < prepareTime {
			t.Errorf("the first trial begins after %s, expected %s at least", d, prepareTime)
		}
		resumed := l.Paused(t.Context())
		time.Sleep(time.Hour)
		began = time.Now()
		resumed(false)
		if d := time.Since(began); d < followerWindow {
			t.Errorf("a trial begins %s after a pause, expected %s at least", d, followerWindow)
		}
		// After the last trial nothing is waited for, and calls go on.
		resumed = l.Paused(t.Context())
		began = time.Now()
		resumed(true)
		if d := time.Since(began); d > 0 {
			t.Errorf("the run's end waits for %s", d)
		}
		l.End()
		if !a.gate.Unrestricted() {
			t.Error("calls are held back after the run")
		}
		a.gate.Suspend()
		if !a.gate.Suspended() {
			t.Error("the run's suspension was taken back twice")
		}
		a.gate.Resume()
	})
}
