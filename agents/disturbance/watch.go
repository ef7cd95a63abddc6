package disturbance

import (
	"context"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/notify"
	"linktrial/internal/service"
	"linktrial/internal/wallclock"
)

const (
	lookEvery = time.Second // at the clock
	// spanLimit is how long a node that does not lead keeps to itself what it noticed.
	spanLimit = 2 * time.Second
	leastStep = wallclock.LeastStep
)

// Config says what is watched.
type Config struct {
	// Rules are those of the plan; nil: it has none.
	Rules *runsheet.Valid
	// Devices are the interfaces that lead to the radios.
	Devices []string
	// Ports counts the traffic of listeners' ports, and with it other traffic is watched
	// whatever the rules are; nil: nobody counts it.
	Ports Ports
	// Apart are ends of other traffic that is not on the air, as a radio that is asked for
	// its readings, or is watched elsewhere; they do not hold where the plan has a rule about such traffic.
	Apart []netip.AddrPort
	// Leading: a record is written only where [Watch.Flush] asks for it, between trials.
	Leading bool
	// Virtual: the clock is a guest's own, and no fault steps it.
	Virtual bool
	// Record writes into the journal; durable: and syncs it.
	Record func(r journal.Watched, durable bool)
	Logger *slog.Logger // nil: none
	// Host measures what the node's processors keep from programs, until end is called;
	// nil: nobody does.
	Host func() (end func() journal.HostWatched)

	// Clocks reads the node's clock and one that never steps; nil: the kernel's.
	Clocks func() (wall time.Time, steady time.Duration)
	// Ticks tells when to look at the clock; nil: every second.
	Ticks <-chan time.Time
}

// Watch is under way from [Start] to [Watch.Stop].
type Watch struct {
	cfg     Config
	stop    func()
	network notify.Notifier // of the kernel's notices of its changes

	mu      sync.Mutex
	since   time.Time     // of the present record, by the clock as it was then
	from    time.Duration // the same by the steady clock
	looked  time.Duration // at the clock, by the steady clock
	traffic *tally
	ports   *portTally                 // nil: nobody counts
	host    func() journal.HostWatched // ends the present record's measurement; nil: none
}

// Start begins to watch.
func Start(ctx context.Context, cfg Config) *Watch {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Clocks == nil {
		cfg.Clocks = (*wallclock.Clock)(nil).Read
	}
	w := &Watch{cfg: cfg}
	w.since, w.from = cfg.Clocks()
	w.looked = w.from
	w.traffic = newTally()
	if cfg.Host != nil {
		w.host = cfg.Host()
	}
	var loops []func(context.Context)
	if cfg.Ports != nil {
		w.ports = newPortTally(cfg.Ports, func() time.Duration { _, steady := cfg.Clocks(); return steady })
		loops = append(loops, w.watchPorts)
	}
	if cfg.Ports != nil || w.limited() {
		loops = append(loops, w.watchDevices()...)
	}
	if !cfg.Virtual {
		loops = append(loops, w.watchClock)
	}
	w.stop = service.Go(context.WithoutCancel(ctx), loops...)
	return w
}

// limited reports whether the plan has a rule about other traffic.
func (w *Watch) limited() bool {
	return w.cfg.Rules != nil && w.cfg.Rules.Interfering != nil
}

// Flush writes what was noticed so far.
func (w *Watch) Flush() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.look(true, false)
}

// Stop ends watching, and writes what was noticed last.
func (w *Watch) Stop() {
	w.stop()
	w.Flush()
}

func (w *Watch) watchClock(ctx context.Context) {
	ticks := w.cfg.Ticks
	if ticks == nil {
		t := time.NewTicker(lookEvery)
		defer t.Stop()
		ticks = t.C
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks:
		}
		w.mu.Lock()
		w.look(false, !w.cfg.Leading)
		w.mu.Unlock()
	}
}

// look compares the clocks. It writes a record where the clock has stepped, where
// flush asks for it, and where, on a node that does not lead, one is due.
func (w *Watch) look(flush, durable bool) {
	wall, steady := w.cfg.Clocks()
	if w.cfg.Virtual {
		wall = w.since.Add(steady - w.from)
	}
	elapsed := steady - w.from
	step := wall.Sub(w.since) - elapsed
	if step < leastStep && step > -leastStep {
		step = 0
	}
	due := durable && elapsed >= spanLimit
	if step != 0 || flush || due {
		r := journal.Watched{Since: w.since.UTC(), Until: w.since.Add(elapsed).UTC(), ClockStep: step}
		if step != 0 {
			r.ClockLook = steady - w.looked
		}
		r.Other, r.Unwatched = w.traffic.drain(w.from, r.Until.Sub(r.Since))
		if w.ports != nil {
			w.ports.look()
			r.Listeners = w.ports.drain(w.from)
		}
		if w.host != nil {
			load := w.host()
			r.Host, w.host = &load, w.cfg.Host()
		}
		w.cfg.Record(r, due)
		w.since, w.from = w.since.Add(elapsed+step), steady
	}
	w.looked = steady
}
