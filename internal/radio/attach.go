package radio

import (
	"slices"

	"linktrial/internal/telemetrysource"
)

// Attach is how a node is connected to the radio: a technician sets it up, and the
// preflight checks it.
type Attach struct {
	// Reach describes for people how the laptop reaches the radio.
	Reach  string `json:"reach"`
	Source string `json:"source"`
	// Interface of the node that leads to the radio; empty: the one that the
	// agent was started with.
	Interface string `json:"interface,omitempty"`
	MTUBytes  int    `json:"mtu_bytes,omitempty"` // of that interface; 0: not stated
	// Roles is what differs between nodes.
	Roles map[Role]AttachRole `json:"roles,omitempty"`
}

// AttachRole is what is set up on the node of one role; zero fields are not stated.
type AttachRole struct {
	Interface string  `json:"interface,omitempty"` // instead of the radio's own
	Address   string  `json:"address,omitempty"`   // of that interface, with its prefix: "10.77.0.1/24"
	Radio     string  `json:"radio,omitempty"`     // address at which this node reaches its own radio
	Routes    []Route `json:"routes,omitempty"`
	// Forwarding reports whether the node forwards packets; nil: not stated.
	Forwarding *bool `json:"forwarding,omitempty"`
}

// Route is a route that the node must have.
type Route struct {
	To  string `json:"to"`            // prefix
	Via string `json:"via,omitempty"` // address of the next hop; empty: on the interface itself
}

// For is what is set up on the node of a role, with what holds for all of them.
func (a *Attach) For(r Role) AttachRole {
	if a == nil {
		return AttachRole{}
	}
	out := a.Roles[r]
	if out.Interface == "" {
		out.Interface = a.Interface
	}
	return out
}

// Sources is what is read on a node with this radio, or with its emulation. An
// emulated radio whose profile names no source has those of every emulated radio,
// [EmulatedTelemetry].
func (p *Profile) Sources(emulated bool) []telemetrysource.Source {
	var out []telemetrysource.Source
	stated := false
	for _, t := range p.Telemetry {
		if t.On == telemetrysource.OnBoth || emulated == (t.On == telemetrysource.OnEmulated) {
			out = append(out, t)
			stated = stated || t.Host == telemetrysource.TargetRadio
		}
	}
	if emulated && !stated {
		out = append(out, EmulatedTelemetry()...)
	}
	return out
}

// TelemetryAddresses are the addresses that a node with this radio, or with its
// emulation, may ask, in the order of the sources. Those at [telemetrysource.TargetRadio] are in it
// under that name, too: a node's technician can say at which address the radio is.
func (p *Profile) TelemetryAddresses(emulated bool, r Role) []string {
	var out []string
	add := func(s telemetrysource.Source) {
		if a := s.Address(); a != "" && !slices.Contains(out, a) {
			out = append(out, a)
		}
	}
	for _, t := range p.Sources(emulated) {
		add(t)
		if t.Host == telemetrysource.TargetRadio && !emulated {
			t.Host = p.Attach.For(r).Radio
			add(t)
		}
	}
	return out
}

// ParameterOf returns the parameter of that name; false where there is none or its value
// is unknown.
func (p *Profile) ParameterOf(name string) (Parameter, bool) {
	i := slices.IndexFunc(p.Parameters, func(f Parameter) bool { return f.Name == name })
	if i < 0 || p.Parameters[i].Unknown {
		return Parameter{}, false
	}
	return p.Parameters[i], true
}

// NominalRate is the radio's rate in bit/s, as it is emulated or as its parameters have it; 0
// where it is not known.
func (p *Profile) NominalRate(emulated bool) float64 {
	if emulated && p.Emulation != nil {
		return p.Emulation.RateBitsPerSecond
	}
	f, known := p.ParameterOf("rate")
	if !known {
		return 0
	}
	return f.Value * map[string]float64{"bit/s": 1, "kbit/s": 1e3, "Mbit/s": 1e6}[f.Unit]
}
