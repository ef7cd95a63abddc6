package silence

import (
	"context"
	"sync"
	"time"

	"linktrial/executor"
	"linktrial/executor/runsheet"
	"linktrial/internal/backoff"
	"linktrial/internal/radio"
)

// minRelayPause is the shortest time between two windows of a relay.
const minRelayPause = time.Minute

// longest is how long a sheet can take when no trial is repeated.
func longest(s *runsheet.Sheet) time.Duration {
	return time.Duration(len(s.Trials)) * (s.Limits.Connect + s.Limits.Transfer + 2*runsheet.ConnectGrace + s.Limits.Pause)
}

// Of a relay with relay processes: it looks this often at how much its radio's
// interface has sent, and so much since the last look is a trial's traffic.
const (
	trafficStep = time.Second
	trafficFrom = 1500 // bytes
)

// Relay is the policy of a relay's agent.
type Relay struct {
	gate      *Gate
	delivery  Delivery
	journal   Records
	longest   time.Duration
	idle      time.Duration // see [runsheet.Sheet.IdleBeforeControl]
	listeners int           // relay processes that treatments pass on this node
	flush     func()        // makes durable what is recorded, before a window
}

// NewRelay returns the policy of one run, of which j is the journal. flush is as in
// [NewServer].
func NewRelay(g *Gate, d Delivery, j Records, sheet *runsheet.Sheet, flush func()) *Relay {
	return &Relay{flush: flush, gate: g, delivery: d, journal: j, longest: longest(sheet), idle: sheet.IdleBeforeControl(), listeners: len(sheet.Listeners(radio.RoleRelay))}
}

// Attend is the relay's part in the run: it ends with the preparation, and calls
// are suspended when that is delivered, until ctx ends. A part with relay processes
// lasts as long as the run.
func (r *Relay) Attend(ctx context.Context, cfg executor.Config) error {
	if r.listeners > 0 {
		var silent sync.WaitGroup
		silent.Go(func() { r.whileRelaying(ctx, cfg.Sent) })
		defer silent.Wait()
		return executor.Attend(ctx, cfg)
	}
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
		r.flush()
		r.gate.Window(ctx, followerWindow, r.delivery.CaughtUp)
	}
	return nil
}

// whileRelaying suspends calls while relay processes are up, until ctx ends, and
// opens a window when the radio's interface has been idle for long enough, or
// where that is not known, when the sheet's time has passed.
func (r *Relay) whileRelaying(ctx context.Context, sent func() (int64, error)) {
	if !prepared(ctx, r.journal, r.delivery, r.listeners) {
		return
	}
	r.gate.Suspend()
	defer r.gate.Resume()
	patience, quiet, waited := r.longest, time.Duration(0), time.Duration(0)
	last := counted(sent)
	for backoff.Sleep(ctx, trafficStep) {
		now := counted(sent)
		if quiet += trafficStep; now < 0 || last < 0 || now-last >= trafficFrom {
			quiet = 0
		}
		waited, last = waited+trafficStep, now
		if quiet < r.idle && waited < patience {
			continue
		}
		if waited >= patience {
			patience = max(minRelayPause, patience/4)
		}
		r.flush()
		r.gate.Window(ctx, followerWindow, r.delivery.CaughtUp)
		quiet, waited, last = 0, 0, counted(sent)
	}
}

// counted is how many bytes an interface has sent; -1: not known.
func counted(sent func() (int64, error)) int64 {
	if sent == nil {
		return -1
	}
	n, err := sent()
	if err != nil {
		return -1
	}
	return n
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
