package faults

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"linktrial/internal/backoff"
	"linktrial/internal/faultlog"
)

// recoverLimit is how long what was hit may take until it is seen working again: a
// database that replays its log on a busy machine takes tens of seconds.
const recoverLimit = 2 * time.Minute

// Injector injects faults.
type Injector interface {
	// Inject injects a fault, and blocks no longer than until the fault has begun.
	Inject(ctx context.Context, i Injection) (Injected, error)
}

// Injected is a fault that has begun.
type Injected struct {
	Touches bool
	Driver  string // whose process was hit; empty for other targets
	Detail  string
	// End ends a fault that lasts; nil: nothing is to be ended.
	End func() error
	// Working reports whether what was hit works again; nil: it does.
	Working func(ctx context.Context) bool
	// Wrong is what the fault has shown and must not be, such as a second orchestrator
	// that was let in; nil: nothing. The campaign fails.
	Wrong error
}

// Campaign injects the faults of a schedule.
type Campaign struct {
	Schedule *Schedule
	Injector Injector
	Log      io.Writer              // of lines as internal/faultlog reads them
	Show     func(f faultlog.Fault) // called when a fault has begun or could not be injected, and when it has ended

	mu     sync.Mutex
	number int
	err    error                   // the first of Log
	places map[place]chan struct{} // held by the fault that hits it
}

// Run injects until ctx ends or no fault is left, then ends the faults that last, and
// blocks until what they hit works again. The error is that of writing the list, of
// faults that could not be ended, or of what they have shown that must not be.
func (c *Campaign) Run(ctx context.Context) error {
	c.places = map[place]chan struct{}{}
	began := time.Now()
	var lists, faults sync.WaitGroup
	next := make(chan Injection)
	lists.Go(func() { c.listed(ctx, began, next) })
	if r := c.Schedule.Random; r != nil {
		lists.Go(func() { c.drawn(ctx, began, r, next) })
	}
	go func() {
		lists.Wait()
		close(next)
	}()
	for i := range next {
		faults.Go(func() { c.one(ctx, i) })
	}
	faults.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

func (c *Campaign) listed(ctx context.Context, began time.Time, next chan<- Injection) {
	for _, i := range c.Schedule.Faults {
		if !at(ctx, began.Add(i.At), i, next) {
			return
		}
	}
}

func (c *Campaign) drawn(ctx context.Context, began time.Time, r *Random, next chan<- Injection) {
	for range faultlog.MaxFaults {
		i, ok := r.Next()
		if !ok || !at(ctx, began.Add(i.At), i, next) {
			return
		}
	}
}

func at(ctx context.Context, when time.Time, i Injection, next chan<- Injection) bool {
	if !backoff.Sleep(ctx, time.Until(when)) {
		return false
	}
	next <- i // Run takes all
	return true
}

// hold waits until no other fault hits the same, and returns what lets the next one
// go on; nil: the campaign has ended.
func (c *Campaign) hold(ctx context.Context, p place) (release func()) {
	c.mu.Lock()
	ch := c.places[p]
	if ch == nil {
		ch = make(chan struct{}, 1)
		c.places[p] = ch
	}
	c.mu.Unlock()
	select {
	case ch <- struct{}{}:
		if ctx.Err() == nil {
			return func() { <-ch }
		}
		<-ch
	case <-ctx.Done():
	}
	return nil
}

// one injects one fault, and returns when it has ended.
func (c *Campaign) one(ctx context.Context, i Injection) {
	for _, p := range placesOf(i) {
		release := c.hold(ctx, p)
		if release == nil {
			return
		}
		defer release()
	}
	f := faultlog.Fault{Kind: i.Kind, Target: i.Target, Node: string(i.Node), From: time.Now()}
	injected, err := c.Injector.Inject(ctx, i)
	if err != nil && ctx.Err() != nil {
		return // the run has ended meanwhile
	}
	f.Touches, f.Driver, f.Detail = injected.Touches, injected.Driver, injected.Detail
	if i.For > 0 && err == nil {
		f.Detail = fmt.Sprintf("for %s; %s", i.For, f.Detail)
	}
	if err != nil {
		f.Error, f.To = err.Error(), time.Now()
		c.note(&f)
		return
	}
	c.note(&f)
	if injected.Wrong != nil {
		c.failed(fmt.Errorf("fault %d (%s): %w", f.Number, i, injected.Wrong))
	}
	backoff.Sleep(ctx, i.For)
	if injected.End != nil {
		if err := injected.End(); err != nil {
			c.failed(fmt.Errorf("fault %d (%s) could not be ended: %w", f.Number, i, err))
			return
		}
	}
	if !c.works(ctx, injected) {
		f.Detail += fmt.Sprintf("; not seen working again within %s", recoverLimit)
		c.note(&f)
		return
	}
	f.To = time.Now()
	c.note(&f)
}

// works waits until what was hit works again. When the campaign has ended, nothing has
// to any more.
func (c *Campaign) works(ctx context.Context, in Injected) bool {
	if in.Working == nil {
		return true
	}
	for deadline := time.Now().Add(recoverLimit); !in.Working(ctx); {
		if time.Now().After(deadline) {
			return false
		}
		if !backoff.Sleep(ctx, 20*time.Millisecond) {
			return true
		}
	}
	return true
}

// note writes a line of the list, and gives the fault its number where it has none.
func (c *Campaign) note(f *faultlog.Fault) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f.Number == 0 {
		c.number++
		f.Number = c.number
	}
	if err := faultlog.Append(c.Log, *f); err != nil && c.err == nil {
		c.err = fmt.Errorf("list of injected faults: %w", err)
	}
	c.Show(*f)
}

func (c *Campaign) failed(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.err = errors.Join(c.err, err)
}
