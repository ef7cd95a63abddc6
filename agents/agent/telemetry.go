package agent

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"linktrial/agents/telemetry"
	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/executor/journal"
	"linktrial/internal/notify"
	"linktrial/internal/radio"
)

// station is what reads the node's radio: between runs by what is known of it
// then, in a run by the profile of its sheet.
type station struct {
	mu      sync.Mutex
	idle    *telemetry.Poller
	run     *telemetry.Poller // nil: no run executes
	changed notify.Notifier   // idle is another poller
}

func newStation(idle *telemetry.Poller) *station {
	return &station{idle: idle}
}

func (s *station) setIdle(p *telemetry.Poller) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.idle = p
	s.changed.Notify()
}

func (s *station) setRun(p *telemetry.Poller) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.run = p
}

// now is the poller whose word is the newest.
func (s *station) now() *telemetry.Poller {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.run != nil {
		return s.run
	}
	return s.idle
}

// poller reads what the node's radio tells by its profile, nil where that is
// not known. In virtual time nothing is read: what a source answered, and when,
// would be the host's.
func (a *agent) poller(p *radio.Profile) *telemetry.Poller {
	c := telemetry.Config{Radio: a.cfg.RadioHost, Logger: a.cfg.Logger}
	emulated := a.cfg.Radio == ""
	switch {
	case a.cfg.Place == journal.PlaceVirtual:
	case p != nil:
		c.Sources = p.Sources(emulated)
		if c.Radio == "" && !emulated {
			c.Radio = p.Attach.For(a.cfg.Role).Radio
		}
	case emulated:
		c.Sources = radio.EmulatedTelemetry()
	}
	if emulated && c.Radio == "" { // an emulator that answers for nobody
		c.Sources = slices.DeleteFunc(c.Sources, func(t radio.Telemetry) bool { return t.Host == radio.TargetRadio })
	}
	return telemetry.New(c)
}

// learnRadio takes up the profile of the radio that this node has.
func (a *agent) learnRadio(profile []byte) {
	if a.cfg.Radio == "" {
		return
	}
	if p := a.readProfile(profile, "what the radio tells between runs"); p != nil {
		a.station.setIdle(a.poller(p))
	}
}

// readProfile reads a profile as the orchestrator tells it, nil where it tells
// none, or one that this agent cannot read; wanted is what it was to be for.
func (a *agent) readProfile(told []byte, wanted string) *radio.Profile {
	if len(told) == 0 {
		return nil
	}
	p := new(radio.Profile)
	if err := json.Unmarshal(told, p); err != nil {
		a.cfg.Logger.Warn("the radio's profile cannot be read; the agent goes on without it", "wanted_for", wanted, "error", err)
		return nil
	}
	return p
}

// watchTelemetry reads the radio while nothing else uses the node, until ctx ends.
func (a *agent) watchTelemetry(ctx context.Context) {
	for ctx.Err() == nil {
		a.station.mu.Lock()
		p, changed := a.station.idle, a.station.changed.Changed()
		a.station.mu.Unlock()
		turn, cancel := context.WithCancel(ctx)
		var running sync.WaitGroup
		running.Go(func() {
			p.Run(turn, func(*radio.Telemetry) bool { return len(a.slot) == 0 }, func([]journal.Telemetry) {})
		})
		select {
		case <-changed:
		case <-ctx.Done():
		}
		cancel()
		running.Wait()
	}
}

// tellTelemetry adds the newest readings to a poll. A node that must be brief
// leaves them out.
func (a *agent) tellTelemetry(r *linktrialv1.PollRequest) {
	if !a.session.Speaks() {
		return
	}
	for _, s := range a.station.now().States() {
		t := &linktrialv1.TelemetryState{Source: s.Source, Kind: string(s.Kind), Error: s.Error}
		if !s.At.IsZero() {
			t.AgeSeconds = time.Since(s.At).Seconds()
		}
		for _, v := range s.Values {
			t.Values = append(t.Values, &linktrialv1.TelemetryReading{Name: v.Name, Value: v.Value, Unit: v.Unit, Counter: v.Counter})
		}
		if t.Error != "" || len(t.Values) > 0 {
			r.Telemetry = append(r.Telemetry, t)
		}
	}
}

// boundaryLimit is how long the readings between two trials may hold up the next.
const boundaryLimit = time.Second

// watcher reads the radio during one run and writes what it tells into the
// run's journal: before the first trial and after the last all sources, at the
// boundaries that this node knows of those that are due, and all the time those
// whose way is no part of the radio network.
type watcher struct {
	p     *telemetry.Poller
	j     *journal.File
	r     *run
	quiet chan struct{} // a transfer has ended here, and no other runs

	cancel  context.CancelFunc
	running sync.WaitGroup
}

func (r *run) newWatcher(p *radio.Profile, j *journal.File) *watcher {
	w := &watcher{p: r.a.poller(p), j: j, r: r, quiet: make(chan struct{}, 1)}
	r.a.station.setRun(w.p)
	return w
}

// begin reads everything and goes on reading what may be read at any time.
func (w *watcher) begin(ctx context.Context) {
	w.note(w.p.Poll(ctx, telemetry.Any))
	ctx, w.cancel = context.WithCancel(ctx)
	w.running.Go(func() { w.p.Run(ctx, telemetry.Always, w.note) })
	w.running.Go(func() {
		for {
			select {
			case <-w.quiet:
				w.between(ctx)
			case <-ctx.Done():
				return
			}
		}
	})
}

// between reads what is due at a trial boundary.
func (w *watcher) between(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, boundaryLimit)
	defer cancel()
	w.note(w.p.Poll(ctx, telemetry.Any))
}

// activity hears how many transfers run on a serving node: when the last has
// ended, a trial boundary begins.
func (w *watcher) activity(transfers int) {
	if transfers == 0 {
		select {
		case w.quiet <- struct{}{}:
		default:
		}
	}
}

// stop ends what begin started and waits for it. Nothing is written after.
func (w *watcher) stop() {
	if w.cancel != nil {
		w.cancel()
	}
	w.running.Wait()
	w.r.a.station.setRun(nil)
}

// end reads everything that is due a last time.
func (w *watcher) end(ctx context.Context) {
	w.stop()
	w.between(ctx)
}

func (w *watcher) note(news []journal.Telemetry) {
	for _, n := range news {
		typ := journal.TypeTelemetry
		if n.Error != "" {
			typ = journal.TypeTelemetryFailed
		}
		if _, err := w.j.Append(typ, n); err != nil {
			// The executor meets the same fault, and acts on it.
			w.r.log.Debug("telemetry was not taken by the journal", "source", n.Source, "error", err)
			return
		}
	}
}
