package silence

import (
	"context"
	"sync"
	"time"

	"linktrial/executor"
	"linktrial/executor/runsheet"
	"linktrial/internal/backoff"
	"linktrial/internal/radio"
	"linktrial/internal/service"
)

// minRelayPause is the shortest time between two windows of a relay.
const minRelayPause = time.Minute

// longest is how long a sheet can take when no trial is repeated.
func longest(s *runsheet.Sheet) time.Duration {
	return time.Duration(len(s.Trials)) * (s.Limits.Connect + s.Limits.Transfer + 2*runsheet.ConnectGrace + s.Limits.Pause)
}

// trafficStep is how often a relay looks whether a trial runs.
const trafficStep = time.Second

// Of a node whose interface the trials' packets pass: so much since the last look is a
// trial's traffic, a twentieth of what the radio carries in that time, within bounds. The
// least is less than one packet of a transfer, and more than what machines send by
// themselves.
const (
	leastTraffic = 200  // bytes
	mostTraffic  = 1500 // bytes
)

// trafficFrom is that number of bytes.
func trafficFrom(r *radio.Profile) int64 {
	if r.Emulation == nil {
		return leastTraffic
	}
	return int64(min(max(leastTraffic, r.Emulation.RateBitsPerSecond/8*trafficStep.Seconds()/20), mostTraffic))
}

// Busy reports whether a trial has been running since it was called last; false, false:
// it is not known.
type Busy func() (busy, known bool)

// Forwarding is for a node whose radio's interface the packets of trials pass, because it
// forwards them or has relay processes: sent is how many bytes the interface has sent, and
// control how many of control packets have passed. Those that the node forwards are counted
// twice, where they come in and where they go out; so in a second with such packets a
// trial's may be overlooked, but they do not pass at the same time.
func Forwarding(sheet *runsheet.Sheet, sent func() (int64, error), control func() int64) Busy {
	from := trafficFrom(&sheet.Radio)
	var last int64
	had := false
	return func() (busy, known bool) {
		passed := control()
		n, err := sent()
		n -= passed
		busy, known = n-last >= from, had && err == nil
		last, had = n, err == nil
		return busy, known
	}
}

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

// Attend is the relay's part in the run, which lasts as long as the run. Where nothing
// tells the relay when trials run, busy is nil: then it ends with the preparation, and the
// relay is silent until ctx ends.
func (r *Relay) Attend(ctx context.Context, cfg executor.Config, busy Busy) error {
	if cfg.Observer == nil {
		cfg.Observer = executor.NopObserver{}
	}
	begun := &begins{Observer: cfg.Observer, done: make(chan struct{})}
	cfg.Observer = begun
	if busy != nil {
		defer service.Go(ctx, func(ctx context.Context) {
			select {
			case <-begun.done:
				r.whileRelaying(ctx, busy)
			case <-ctx.Done():
			}
		})()
		return executor.Attend(ctx, cfg)
	}
	ectx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	begun.then = func() { cancel(executor.ErrFinish) }
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
		r.gate.Window(ctx, followerWindow, followerWindow, r.delivery.Settled)
	}
	return nil
}

// whileRelaying suspends calls until ctx ends, and opens a window when no trial has run
// for long enough, or where that is not known, when the sheet's time has passed.
func (r *Relay) whileRelaying(ctx context.Context, busy Busy) {
	if !prepared(ctx, r.journal, r.delivery, r.listeners) {
		return
	}
	r.gate.Suspend()
	defer r.gate.Resume()
	patience, quiet, waited := r.longest, time.Duration(0), time.Duration(0)
	for backoff.Sleep(ctx, trafficStep) {
		waited += trafficStep
		if quiet += trafficStep; isOrMayBe(busy()) {
			quiet = 0
		}
		if quiet < r.idle && waited < patience {
			continue
		}
		if waited >= patience {
			patience = max(minRelayPause, patience/4)
		}
		r.flush()
		r.gate.Window(ctx, followerWindow, followerWindow, r.delivery.Settled)
		quiet, waited = 0, 0
	}
}

func isOrMayBe(busy, known bool) bool { return busy || !known }

// begins tells when the part has begun: until then the node prepares and calls.
type begins struct {
	executor.Observer
	done chan struct{}
	then func() // nil: nothing
	once sync.Once
}

// Begun implements [executor.Observer].
func (o *begins) Begun(ctx context.Context, recorded bool) error {
	err := o.Observer.Begun(ctx, recorded)
	o.once.Do(func() { close(o.done) })
	if o.then != nil {
		o.then()
	}
	return err
}
