// Package service starts the parts of a program and stops them again: [Go] is the
// goroutines of one service, a [Group] the services of a program, which stop in the
// reverse order of their start.
//
// [golang.org/x/sync/errgroup] waits for goroutines that all end by themselves or by the
// first error. Services end when they are told to, one after the other, and what stops
// them is often more than the end of a context.
package service

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"
)

// Go runs loops, each in a goroutine of its own, until stop is called or ctx ends. stop
// ends the context of the loops and waits for all of them; it may be called several times
// and by several goroutines. A service that outlives the call that starts it is given
// [context.WithoutCancel] of that call's context.
func Go(ctx context.Context, loops ...func(context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	for _, loop := range loops {
		running.Go(func() { loop(ctx) })
	}
	return func() {
		cancel()
		running.Wait()
	}
}

// Group stops services in the reverse order in which they were added. Who starts a
// service adds it at once, so that a start which fails half way stops what was started.
// The zero value is ready.
type Group struct {
	// Logger gets a warning, nil none, where a service takes longer than Slow to stop. The
	// service is waited for all the same.
	Logger *slog.Logger
	Slow   time.Duration // zero: 10 s

	services []service
	once     sync.Once
	err      error
}

type service struct {
	name string
	stop func(context.Context) error
}

// Add adds a service that was started. It must not be called after [Group.Stop].
func (g *Group) Add(name string, stop func()) {
	g.AddContext(name, func(context.Context) error { stop(); return nil })
}

// AddContext is [Group.Add] for a service whose end can fail, and is hurried by the end of
// a context.
func (g *Group) AddContext(name string, stop func(context.Context) error) {
	g.services = append(g.services, service{name, stop})
}

// Stop stops all services, each when the one before has stopped, and returns their errors.
// Every further call waits for the first one and returns the same.
func (g *Group) Stop(ctx context.Context) error {
	g.once.Do(func() {
		var errs []error
		for i := len(g.services) - 1; i >= 0; i-- {
			errs = append(errs, g.stop(ctx, &g.services[i]))
		}
		g.err = errors.Join(errs...)
	})
	return g.err
}

func (g *Group) stop(ctx context.Context, s *service) error {
	slow := g.Slow
	if slow == 0 {
		slow = 10 * time.Second
	}
	if g.Logger != nil {
		defer time.AfterFunc(slow, func() {
			g.Logger.Warn("a service has not stopped yet", "service", s.name, "after", slow)
		}).Stop()
	}
	return s.stop(ctx)
}
