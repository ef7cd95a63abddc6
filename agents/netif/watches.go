package netif

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
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

// Config says what is watched.
type Config struct {
	Radios []Radio // at least one
	// Quiet has nothing sent over them: no other machine with their addresses is looked for.
	Quiet bool
	// May names drivers of which a process runs on the node, or has just run, that may change
	// the node's network; nil: that is not known.
	May    func() []string
	Logger *slog.Logger
}

// mayHave says who may have changed a setting, for people; empty: nothing is known.
func (c *Config) mayHave() string {
	if c.May == nil {
		return ""
	}
	names := c.May()
	switch len(names) {
	case 0:
		return " (no driver that may do so ran on this node: another program, or a person)"
	case 1:
		return fmt.Sprintf(" (of the drivers that ran on this node, only %s may do so)", names[0])
	}
	return fmt.Sprintf(" (of the drivers that ran on this node, %s may do so)", strings.Join(names, ", "))
}

// Start watches the interfaces of radios until stop.
func Start(ctx context.Context, cfg Config) (w *Watches, stop func(), err error) {
	log := cfg.Logger
	w = &Watches{changed: new(notify.Notifier), settings: keepSettings(log, cfg.mayHave)}
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
	for _, r := range cfg.Radios {
		one, end, err := start(ctx, &cfg, r, w.changed)
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
		one.look(now, true)
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
	for _, one := range w.each {
		if fault, undone, _ := one.Since(at); fault != "" {
			faults = append(faults, executor.InterfaceFault{Device: one.want.radio.Device, Text: fault, Undone: undone})
		}
	}
	return faults, more
}

// State implements [executor.Interface].
func (w *Watches) State() (faults []executor.InterfaceFault, changed <-chan struct{}) {
	changed = w.changed.Changed()
	w.holdSettings()
	for _, one := range w.each {
		if fault, _ := one.State(); fault != "" {
			faults = append(faults, executor.InterfaceFault{Device: one.want.radio.Device, Text: fault})
		}
	}
	return faults, changed
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
