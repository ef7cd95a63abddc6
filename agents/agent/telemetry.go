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
	"linktrial/executor/runsheet"
	"linktrial/internal/notify"
	"linktrial/internal/radio"
	"linktrial/internal/service"
	"linktrial/internal/telemetrysource"
)

// radioPoller is what reads the node's radio: between runs by what is known of
// the radio then, in a run by the profile of its sheet.
type radioPoller struct {
	mu      sync.Mutex
	idle    *telemetry.Poller
	run     *telemetry.Poller // nil: no run is executed
	changed notify.Notifier   // idle was replaced
}

func newRadioPoller(idle *telemetry.Poller) *radioPoller {
	return &radioPoller{idle: idle}
}

func (p *radioPoller) setIdle(idle *telemetry.Poller) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle = idle
	p.changed.Notify()
}

func (p *radioPoller) setRun(run *telemetry.Poller) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.run = run
}

// current is the poller that reads the radio now.
func (p *radioPoller) current() *telemetry.Poller {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.run != nil {
		return p.run
	}
	return p.idle
}

// poller reads the node's radio by its profile, nil where that is not known. In
// virtual time nothing is read: what a source answered, and when, would be the
// host's. What rules of validity are about is read whatever the profile says. Of the
// profile's addresses it asks those that named, from the signed assignment, has.
func (a *agent) poller(p *radio.Profile, v *runsheet.Valid, named []string) *telemetry.Poller {
	c := telemetry.Config{Named: named, Radio: a.cfg.RadioHost, Role: a.cfg.Role, Node: telemetrysource.Node{PowerSupplies: a.cfg.PowerSupplies}, Logger: a.cfg.Logger}
	emulated := a.cfg.emulated()
	switch {
	case a.cfg.Place == journal.PlaceVirtual:
	case a.cfg.Place == journal.PlaceUnnamed: // the sheet's profile may be another radio's
	case p != nil:
		c.Sources = p.Sources(emulated)
		if address := p.Attach.For(a.cfg.Role).Radio; c.Radio == "" && !emulated && address != "" {
			for i := range c.Sources {
				if c.Sources[i].Host == telemetrysource.TargetRadio {
					c.Sources[i].Host = address
				}
			}
		}
	case emulated:
		c.Sources = radio.EmulatedTelemetry()
		c.Named = addressesOf(c.Sources) // the program's own, not a profile's
	}
	if emulated && c.Radio == "" { // the emulator answers for no radio
		c.Sources = slices.DeleteFunc(c.Sources, func(t telemetrysource.Source) bool { return t.Host == telemetrysource.TargetRadio })
	}
	if a.cfg.Place != journal.PlaceVirtual {
		added := forRules(c.Sources, v)
		c.Sources, c.Named = append(c.Sources, added...), append(slices.Clone(c.Named), addressesOf(added)...)
	}
	return telemetry.New(c)
}

func addressesOf(sources []telemetrysource.Source) (out []string) {
	for _, t := range sources {
		out = append(out, t.Address())
	}
	return out
}

// forRules are the sources of the node itself that rules of validity need beside sources.
func forRules(sources []telemetrysource.Source, v *runsheet.Valid) []telemetrysource.Source {
	rules := v.Rules()
	needed := map[telemetrysource.About]bool{
		telemetrysource.AboutNode:     slices.Contains(rules, runsheet.RuleBattery) || slices.Contains(rules, runsheet.RuleTemperature),
		telemetrysource.AboutPosition: slices.Contains(rules, runsheet.RulePosition),
	}
	var out []telemetrysource.Source
	for _, own := range []struct {
		kind telemetrysource.Kind
		name string
	}{{telemetrysource.KindHost, "node"}, {telemetrysource.KindGPSD, "node-position"}} {
		about := telemetrysource.Of(own.kind).About
		if needed[about] && !slices.ContainsFunc(sources, func(s telemetrysource.Source) bool { return s.Kind.Is(about) }) {
			out = append(out, telemetrysource.Own(own.kind, own.name, "a rule of validity of the plan"))
		}
	}
	return out
}

// learnRadio reads the node's radio by the profile that the orchestrator has of it,
// as far as that is signed; nil: the orchestrator has none.
func (a *agent) learnRadio(signed *linktrialv1.SignedAssignment, challenge []byte) {
	if signed == nil {
		a.noteProfile(false, nil)
		return
	}
	as, err := a.openAssignment(signed, challenge, false)
	a.noteProfile(err == nil && len(as.RadioProfile) > 0, err)
	if err != nil || a.cfg.Radio == "" {
		return
	}
	if p := a.readProfile(as.RadioProfile, "telemetry between runs"); p != nil {
		a.radio.setIdle(a.poller(p, nil, as.TelemetryAddresses))
	}
}

// readProfile decodes a profile that the orchestrator sent, nil where it sent
// none, or one that this agent cannot read; wantedFor is what it was needed for.
func (a *agent) readProfile(encoded []byte, wantedFor string) *radio.Profile {
	if len(encoded) == 0 {
		return nil
	}
	p, err := decodeProfile(encoded)
	if err != nil {
		a.cfg.Logger.Warn("the radio's profile cannot be read; the agent goes on without it", "wanted_for", wantedFor, "error", err)
		return nil
	}
	return p
}

func decodeProfile(encoded []byte) (*radio.Profile, error) {
	p := new(radio.Profile)
	if err := json.Unmarshal(encoded, p); err != nil {
		return nil, err
	}
	return p, nil
}

// watchTelemetry reads the radio while nothing else uses the node, until ctx ends.
func (a *agent) watchTelemetry(ctx context.Context) {
	for ctx.Err() == nil {
		a.radio.mu.Lock()
		p, changed := a.radio.idle, a.radio.changed.Changed()
		a.radio.mu.Unlock()
		stop := service.Go(ctx, func(ctx context.Context) {
			p.Run(ctx, func(*telemetrysource.Source) bool { return len(a.slot) == 0 }, func([]journal.Telemetry) {})
		})
		select {
		case <-changed:
		case <-ctx.Done():
		}
		stop()
	}
}

// addTelemetry adds the newest readings to a poll. While calls are restricted
// they are left out.
func (a *agent) addTelemetry(r *linktrialv1.PollRequest) {
	if !a.session.Gate().Unrestricted() {
		return
	}
	for _, s := range a.radio.current().States() {
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

// boundaryLimit is how long the readings between two trials may delay the next.
const boundaryLimit = time.Second

// watcher reads the radio during one run and writes the readings into the run's
// journal: all sources before the first trial and after the last, those that are
// due at the boundaries that this node knows of, and all the time those whose
// path is no part of the radio network.
type watcher struct {
	p    *telemetry.Poller
	j    *journal.File
	r    *run
	idle chan struct{} // the last transfer under way on this node has ended

	endReading func() // nil: not begun
}

func (r *run) newWatcher(p *radio.Profile, v *runsheet.Valid, j *journal.File) *watcher {
	w := &watcher{p: r.a.poller(p, v, r.telemetryAddresses(p)), j: j, r: r, idle: make(chan struct{}, 1)}
	r.a.radio.setRun(w.p)
	return w
}

// telemetryAddresses are those that this node may ask: of the signed sheet, where there is
// no assignment.
func (r *run) telemetryAddresses(p *radio.Profile) []string {
	if r.assignment != nil {
		return r.assignment.TelemetryAddresses
	}
	return p.TelemetryAddresses(r.a.cfg.emulated(), r.a.cfg.Role)
}

// begin reads everything and goes on reading what may be read at any time.
func (w *watcher) begin(ctx context.Context) {
	w.record(w.p.Poll(ctx, telemetry.Any))
	always := func(ctx context.Context) { w.p.Run(ctx, telemetry.Always, w.record) }
	w.endReading = service.Go(ctx, always, func(ctx context.Context) {
		for {
			select {
			case <-w.idle:
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
	w.record(w.p.Poll(ctx, telemetry.Any))
}

// transfers takes note how many transfers are under way on a serving node: when
// the last has ended, a trial boundary begins.
func (w *watcher) transfers(n int) {
	if n == 0 {
		select {
		case w.idle <- struct{}{}:
		default:
		}
	}
}

// stop ends what begin started and waits for it. Nothing is written after.
func (w *watcher) stop() {
	if w.endReading != nil {
		w.endReading()
	}
	w.r.a.radio.setRun(nil)
}

// end reads everything that is due a last time.
func (w *watcher) end(ctx context.Context) {
	w.stop()
	w.between(ctx)
}

func (w *watcher) record(readings []journal.Telemetry) {
	for _, n := range readings {
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
