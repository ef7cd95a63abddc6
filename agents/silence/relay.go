package silence

import (
	"context"
	"time"

	"linktrial/executor"
	"linktrial/executor/runsheet"
	"linktrial/internal/backoff"
)

// minRelayPause is the shortest time between two windows of a relay.
const minRelayPause = time.Minute

// longest is how long a sheet can take when no trial is repeated.
func longest(s *runsheet.Sheet) time.Duration {
	return time.Duration(len(s.Trials)) * (s.Limits.Connect + s.Limits.Transfer + 2*connectGrace + s.Limits.Pause)
}

// Relay is the policy of a relay's agent.
type Relay struct {
	gate     *Gate
	delivery Delivery
	longest  time.Duration
}

// NewRelay returns the policy of one run.
func NewRelay(g *Gate, d Delivery, sheet *runsheet.Sheet) *Relay {
	return &Relay{gate: g, delivery: d, longest: longest(sheet)}
}

// Attend is the relay's part in the run: it ends with the preparation, and calls
// are suspended when that is delivered, until ctx ends.
func (r *Relay) Attend(ctx context.Context, cfg executor.Config) error {
	ectx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if cfg.Observer == nil {
		cfg.Observer = executor.NopObserver{}
	}
	cfg.Observer = &onlyBegins{Observer: cfg.Observer, end: func() { cancel(executor.ErrFinish) }}
	if err := executor.Attend(ectx, cfg); err != nil {
		return err
	}
	if ctx.Err() != nil || !r.delivery.Await(ctx) {
		return nil
	}
	r.gate.Suspend()
	defer r.gate.Resume()
	// A run can take longer than its trials, where people pause it or have
	// trials repeated. From then on the relay asks now and then.
	for pause := r.longest; backoff.Sleep(ctx, pause); pause = max(minRelayPause, pause/4) {
		r.gate.Window(ctx, followerWindow, r.delivery.CaughtUp)
	}
	return nil
}

// onlyBegins ends a part as soon as it has begun: provenance and clock are all of it.
type onlyBegins struct {
	executor.Observer
	end func()
}

// Begun implements [executor.Observer].
func (o *onlyBegins) Begun(ctx context.Context, recorded bool) error {
	err := o.Observer.Begun(ctx, recorded)
	o.end()
	return err
}
