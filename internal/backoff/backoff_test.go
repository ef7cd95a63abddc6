package backoff_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"linktrial/internal/backoff"
)

func TestPausesDoubleUpToTheBound(t *testing.T) {
	b := backoff.Backoff{Min: 200 * time.Millisecond, Max: time.Second}
	var got []time.Duration
	for range 5 {
		got = append(got, b.Next())
	}
	if want := []time.Duration{200e6, 400e6, 800e6, time.Second, time.Second}; !slices.Equal(got, want) {
		t.Errorf("pauses %v, want %v", got, want)
	}
	b.Reset()
	if got := b.Next(); got != 200*time.Millisecond {
		t.Errorf("after Reset the pause is %v, want the shortest", got)
	}
}

func TestJitterStaysBetweenHalfAndAll(t *testing.T) {
	lengths := map[time.Duration]bool{}
	for range 100 {
		b := backoff.Backoff{Min: time.Second, Max: time.Minute, Jitter: true}
		for want := time.Second; want <= 4*time.Second; want *= 2 {
			d := b.Next()
			if d < want/2 || d >= want {
				t.Fatalf("pause %v, want at least %v and under %v", d, want/2, want)
			}
			lengths[d] = true
		}
	}
	if len(lengths) < 200 {
		t.Errorf("300 pauses have %d lengths", len(lengths))
	}
	if d := (&backoff.Backoff{Min: 1, Max: 1, Jitter: true}).Next(); d != 1 {
		t.Errorf("a pause of 1 ns became %d ns", d)
	}
}

func TestWaitTakesThePause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, began := backoff.Backoff{Min: time.Second, Max: 5 * time.Second}, time.Now()
		for _, want := range []time.Duration{1, 3, 7, 12, 17} { // 1, 2, 4, 5 and 5 seconds
			if !b.Wait(t.Context()) || time.Since(began) != want*time.Second {
				t.Fatalf("%v have passed, want %v", time.Since(began), want*time.Second)
			}
		}
	})
}

func TestWaitEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		b, began := backoff.Backoff{Min: time.Hour, Max: time.Hour}, time.Now()
		if b.Wait(ctx) || time.Since(began) != time.Minute {
			t.Errorf("Wait returned after %v, want false after a minute", time.Since(began))
		}
		if b.Wait(ctx) || backoff.Sleep(ctx, 0) || time.Since(began) != time.Minute {
			t.Error("a pause began although its context had ended")
		}
	})
}

type clock struct{ asked, stopped time.Duration }

func (c *clock) Timer(d time.Duration) (<-chan time.Time, func()) {
	fired := make(chan time.Time, 1)
	fired <- time.Time{}
	c.asked += d
	return fired, func() { c.stopped += d }
}

func TestWaitUsesTheClock(t *testing.T) {
	c := &clock{}
	b := backoff.Backoff{Min: time.Hour, Max: time.Hour, Clock: c}
	if !b.Wait(t.Context()) || !backoff.SleepOn(t.Context(), c, time.Hour) {
		t.Error("the clock's timer had fired, and the pause did not end")
	}
	if c.asked != 2*time.Hour || c.stopped != c.asked {
		t.Errorf("timers of %v were made and of %v released, want 2h of each", c.asked, c.stopped)
	}
}
