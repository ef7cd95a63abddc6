// Package backoff spaces out repeated attempts: each pause is twice as long as
// the one before it, up to a bound.
package backoff

import (
	"context"
	"math/rand/v2"
	"time"
)

// Clock makes timers; nil in a [Backoff] is the system's clock.
type Clock interface {
	// Timer sends once after d; stop releases it.
	Timer(d time.Duration) (fired <-chan time.Time, stop func())
}

// Backoff holds the length of the next pause. It is for one goroutine, and is
// started again with [Backoff.Reset] after an attempt that succeeded.
type Backoff struct {
	Min time.Duration // the first pause
	Max time.Duration // no pause is longer

	// Jitter draws each pause between half of its length and all of it, so that
	// nodes which lost the same peer at once do not come back at once.
	Jitter bool

	Clock Clock

	next time.Duration
}

// Next returns how long to pause now; the pause after it is twice as long.
func (b *Backoff) Next() time.Duration {
	d := min(max(b.next, b.Min), b.Max)
	b.next = 2 * d
	if half := d / 2; b.Jitter && half > 0 {
		return half + rand.N(half)
	}
	return d
}

// Reset makes the next pause the shortest again.
func (b *Backoff) Reset() { b.next = 0 }

// Wait pauses for [Backoff.Next]. It returns false where ctx ended first.
func (b *Backoff) Wait(ctx context.Context) bool {
	if b.Clock == nil {
		return Sleep(ctx, b.Next())
	}
	return SleepOn(ctx, b.Clock, b.Next())
}

// Sleep pauses for d. It returns false where ctx ended first.
func Sleep(ctx context.Context, d time.Duration) bool { return SleepOn(ctx, System{}, d) }

// SleepOn is [Sleep] by a clock other than the system's.
func SleepOn(ctx context.Context, c Clock, d time.Duration) bool {
	if d <= 0 || ctx.Err() != nil {
		return ctx.Err() == nil
	}
	fired, stop := c.Timer(d)
	defer stop()
	select {
	case <-fired:
		return true
	case <-ctx.Done():
		return false
	}
}

// System is the system's clock.
type System struct{}

// Timer implements [Clock].
func (System) Timer(d time.Duration) (<-chan time.Time, func()) {
	t := time.NewTimer(d)
	return t.C, func() { t.Stop() }
}
