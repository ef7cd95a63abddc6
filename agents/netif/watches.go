package netif

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"linktrial/executor"
	"linktrial/internal/notify"
)

// Watches watches the interfaces of all radios of a node that a run uses; it implements
// [executor.Interface].
type Watches struct {
	each     []*Watch
	changed  *notify.Notifier
	settings *kernelSettings
}

// Start watches the interfaces of radios, at least one, until stop.
func Start(ctx context.Context, radios []Radio, log *slog.Logger) (w *Watches, stop func(), err error) {
	w = &Watches{changed: new(notify.Notifier), settings: keepSettings(log)}
	ctx, cancel := context.WithCancel(ctx)
	var stops []func()
	var watching sync.WaitGroup
	stop = func() {
		cancel()
		watching.Wait()
		for _, s := range stops {
			s()
		}
		w.settings.close()
	}
	for _, r := range radios {
		one, end, err := start(ctx, r, w.changed, log)
		if err != nil {
			stop()
			return nil, nil, err
		}
		w.each, stops = append(w.each, one), append(stops, end)
	}
	watching.Go(func() { Follow(ctx, log, w.look) })
	filter, err := subscribeFilter()
	if err != nil {
		log.Warn("changes of the packet filter are not noticed", "error", err)
	}
	// The filter is the whole node's: one interface stands for all.
	watching.Go(func() { followFilter(ctx, filter, log, w.each[0].happened) })
	return w, stop, nil
}

// look has every watch look. Who listens looks whether anything can be heard, see
// [Watches.Deaf], and is told whatever has changed.
func (w *Watches) look() {
	now := time.Now()
	for _, one := range w.each {
		one.look(now)
	}
	w.holdSettings()
	w.changed.Notify()
}

// Settled waits until it is known whether other machines have the radios' addresses when
// the watch begins, or until ctx ends.
func (w *Watches) Settled(ctx context.Context) {
	for _, one := range w.each {
		one.Settled(ctx)
	}
}

// Since implements [executor.Interface].
func (w *Watches) Since(at time.Time) (faults []executor.InterfaceFault, more <-chan struct{}) {
	more = w.changed.Changed()
	w.holdSettings()
	return w.faults(func(one *Watch) (string, <-chan struct{}) { return one.Since(at) }), more
}

// State implements [executor.Interface].
func (w *Watches) State() (faults []executor.InterfaceFault, changed <-chan struct{}) {
	changed = w.changed.Changed()
	w.holdSettings()
	return w.faults((*Watch).State), changed
}

func (w *Watches) faults(of func(*Watch) (string, <-chan struct{})) (out []executor.InterfaceFault) {
	for _, one := range w.each {
		if fault, _ := of(one); fault != "" {
			out = append(out, executor.InterfaceFault{Device: one.want.radio.Device, Text: fault})
		}
	}
	return out
}

// Deaf implements [executor.Interface].
func (w *Watches) Deaf(port int) string {
	waiting := waitingAt(port)
	for _, one := range w.each {
		if why := one.deaf(waiting); why != "" {
			return why
		}
	}
	return ""
}
