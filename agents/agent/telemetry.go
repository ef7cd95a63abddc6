package agent

import (
	"context"
	"encoding/json"
	"slices"
	"sync"

	"linktrial/agents/telemetry"
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

// watch reads the radio between runs, while idle, until ctx ends.
func (p *radioPoller) watch(ctx context.Context, idle func() bool) {
	for ctx.Err() == nil {
		p.mu.Lock()
		poller, changed := p.idle, p.changed.Changed()
		p.mu.Unlock()
		stop := service.Go(ctx, func(ctx context.Context) {
			poller.Run(ctx, func(*telemetrysource.Source) bool { return idle() }, func([]journal.Telemetry) {})
		})
		select {
		case <-changed:
		case <-ctx.Done():
		}
		stop()
	}
}

// poller reads the node's radio by its profile, nil where that is not known. In
// virtual time nothing is read: what a source answered, and when, would be the
// host's. What rules of validity are about is read whatever the profile says. Of the
// profile's addresses it asks those that named, from the signed assignment, has.
func (c *Config) poller(p *radio.Profile, v *runsheet.Valid, named []string) *telemetry.Poller {
	t := telemetry.Config{Named: named, Radio: c.RadioHost, Role: c.Role, Node: telemetrysource.Node{PowerSupplies: c.PowerSupplies}, Logger: c.Logger}
	emulated := c.emulated()
	switch {
	case c.Place == journal.PlaceVirtual:
	case c.Place == journal.PlaceUnnamed: // the sheet's profile may be another radio's
	case p != nil:
		t.Sources = p.Sources(emulated)
		if address := p.Attach.For(c.Role).Radio; t.Radio == "" && !emulated && address != "" {
			for i := range t.Sources {
				if t.Sources[i].Host == telemetrysource.TargetRadio {
					t.Sources[i].Host = address
				}
			}
		}
	case emulated:
		t.Sources = radio.EmulatedTelemetry()
		t.Named = addressesOf(t.Sources) // the program's own, not a profile's
	}
	if emulated && t.Radio == "" { // the emulator answers for no radio
		t.Sources = slices.DeleteFunc(t.Sources, func(t telemetrysource.Source) bool { return t.Host == telemetrysource.TargetRadio })
	}
	if c.Place != journal.PlaceVirtual {
		added := forRules(t.Sources, v)
		t.Sources, t.Named = append(t.Sources, added...), append(slices.Clone(t.Named), addressesOf(added)...)
	}
	return telemetry.New(t)
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

// readProfile decodes a profile that the orchestrator sent, nil where it sent
// none, or one that this agent cannot read; wantedFor is what it was needed for.
func (c *Config) readProfile(encoded []byte, wantedFor string) *radio.Profile {
	if len(encoded) == 0 {
		return nil
	}
	p, err := decodeProfile(encoded)
	if err != nil {
		c.Logger.Warn("the radio's profile cannot be read; the agent goes on without it", "wanted_for", wantedFor, "error", err)
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
