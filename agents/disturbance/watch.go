package disturbance

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
)

const (
	lookEvery = time.Second // at the clock
	// spanLimit is how long a node that does not lead keeps to itself what it noticed.
	spanLimit = 2 * time.Second
	// leastStep is the least step that is recorded: two clocks are read one after the
	// other, and the process may be interrupted between.
	leastStep = time.Millisecond
)

// Config says what is watched.
type Config struct {
	Rules *runsheet.Valid
	// Devices are the interfaces that lead to the radios.
	Devices []string
	// Leading: a record is written only where [Watch.Flush] asks for it, between trials.
	Leading bool
	// Virtual: the clock is a guest's own and does not step.
	Virtual bool
	// Record writes into the journal; durable: and syncs it.
	Record func(r journal.Watched, durable bool)
	Logger *slog.Logger // nil: none

	// Clocks reads the node's clock and one that never steps; nil: the kernel's.
	Clocks func() (wall time.Time, steady time.Duration)
	// Ticks tells when to look at the clock; nil: every second.
	Ticks <-chan time.Time
}

// Wanted reports whether a node is to be watched: with any rule, because its records
// also show how far its journal has come.
func Wanted(v *runsheet.Valid) bool { return v != nil }

// Watch is under way from [Start] to [Watch.Stop].
type Watch struct {
	cfg     Config
	cancel  context.CancelFunc
	running sync.WaitGroup

	mu      sync.Mutex
	since   time.Time     // of the present record, by the clock as it was then
	from    time.Duration // the same by the steady clock
	looked  time.Duration // at the clock, by the steady clock
	traffic *tally
}

// Start begins to watch.
func Start(ctx context.Context, cfg Config) *Watch {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Clocks == nil {
		cfg.Clocks = clocks
	}
	w := &Watch{cfg: cfg}
	ctx, w.cancel = context.WithCancel(context.WithoutCancel(ctx))
	w.since, w.from = cfg.Clocks()
	w.looked = w.from
	w.traffic = newTally()
	if cfg.Rules.Interfering != nil {
		w.watchDevices(ctx)
	}
	if !cfg.Virtual {
		w.running.Go(func() { w.watchClock(ctx) })
	}
	return w
}

// Flush writes what was noticed so far.
func (w *Watch) Flush() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.look(true, false)
}

// Stop ends watching, and writes what was noticed last.
func (w *Watch) Stop() {
	w.cancel()
	w.running.Wait()
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
		r.Other, r.Unwatched = w.traffic.take(w.from, r.Until.Sub(r.Since))
		w.cfg.Record(r, due)
		w.since, w.from = w.since.Add(elapsed+step), steady
	}
	w.looked = steady
}

// clocks reads CLOCK_REALTIME, and CLOCK_BOOTTIME, which goes on while the node
// sleeps and is changed by nobody. They are read again where something came between.
func clocks() (wall time.Time, steady time.Duration) {
	var before, real, after unix.Timespec
	for range 10 {
		if errors.Join(unix.ClockGettime(unix.CLOCK_BOOTTIME, &before), unix.ClockGettime(unix.CLOCK_REALTIME, &real),
			unix.ClockGettime(unix.CLOCK_BOOTTIME, &after)) != nil {
			return time.Now().Round(0), 0 // these clocks are in every kernel since 2.6.39
		}
		if after.Nano()-before.Nano() < int64(leastStep)/10 {
			break
		}
	}
	return time.Unix(real.Unix()), time.Duration((before.Nano() + after.Nano()) / 2)
}
