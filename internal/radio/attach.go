package radio

import (
	"net"
	"slices"
	"strconv"
	"time"
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

// TelemetryKind is the way by which a source is read. Closed list.
type TelemetryKind string

const (
	TelemetrySNMP TelemetryKind = "snmp" // SNMPv2c (RFC 3416) or v3 (RFC 3414), GET alone
	TelemetryHTTP TelemetryKind = "http" // a JSON document by GET
	TelemetryGPSD TelemetryKind = "gpsd" // position, by gpsd's JSON protocol
	TelemetryHost TelemetryKind = "host" // the laptop's own power supply, and its temperature
)

// GPSDPort is where gpsd answers unless it is told otherwise, NodeInterval the time
// between two readings of a node's own sources where a profile states none.
const (
	GPSDPort     = 2947
	NodeInterval = 5 * time.Second
)

// TelemetryPoll says when a source may be read.
type TelemetryPoll string

const (
	// PollBetweenTrials: only while no trial runs, so that nothing of a trial
	// shares the radio's interface with it.
	PollBetweenTrials TelemetryPoll = "between-trials"
	// PollAlways: the way to the source is no part of the radio network.
	PollAlways TelemetryPoll = "always"
)

// TelemetryOn says on which nodes a source is read.
type TelemetryOn string

const (
	OnReal     TelemetryOn = "real"
	OnEmulated TelemetryOn = "emulated"
	OnBoth     TelemetryOn = "both"
)

// TargetRadio as a source's host is the radio itself: on a real node the
// address that [AttachRole.Radio] gives, on an emulated one where the emulator
// answers for the node's radio.
const TargetRadio = "radio"

// Telemetry is one source of readings of a radio or of the node beside it.
type Telemetry struct {
	Name   string        `json:"name"`
	Kind   TelemetryKind `json:"kind"`
	On     TelemetryOn   `json:"on"`
	Source string        `json:"source"` // the document that says that the radio has this
	Poll   TelemetryPoll `json:"poll"`
	// IntervalNS is the least time between two readings, in nanoseconds.
	IntervalNS int64 `json:"interval_ns"`
	// Host is [TargetRadio], a name or an address; of snmp, http and gpsd.
	Host string `json:"host,omitempty"`
	Port int    `json:"port,omitempty"`

	Path string `json:"path,omitempty"` // of http: "/status.json"
	TLS  bool   `json:"tls,omitempty"`  // of http
	SNMP *SNMP  `json:"snmp,omitempty"`
	// Values to read; of gpsd and host they are given by the kind.
	Values []TelemetryValue `json:"values,omitempty"`
}

// SNMP is the version, and the names of the credentials, that a source is read with. Secrets are not part of a
// profile: the fields that end in Env name variables of the Linktrial agent's
// environment that hold them.
type SNMP struct {
	Version      string `json:"version"`                 // "2c" or "3"
	Community    string `json:"community,omitempty"`     // of 2c, "public" unless stated
	CommunityEnv string `json:"community_env,omitempty"` // of 2c, instead
	User         string `json:"user,omitempty"`          // of 3
	Auth         string `json:"auth,omitempty"`          // of 3: sha256 and its like; empty: none
	AuthEnv      string `json:"auth_env,omitempty"`
	Privacy      string `json:"privacy,omitempty"` // of 3: aes and its like; empty: none
	PrivacyEnv   string `json:"privacy_env,omitempty"`
}

// TelemetryValue is one figure of a source.
type TelemetryValue struct {
	Name    string `json:"name"`              // "snr"
	OID     string `json:"oid,omitempty"`     // of snmp: "1.3.6.1.2.1.31.1.1.1.6.1"
	Pointer string `json:"pointer,omitempty"` // of http: RFC 6901
	Unit    string `json:"unit,omitempty"`    // after scaling: "dB"
	// Scale is what the number read is multiplied with.
	Scale float64 `json:"scale"`
	// Counter marks a number that only grows: its rate is shown.
	Counter bool `json:"counter,omitempty"`
}

// Sources is what is read on a node with this radio, or with its emulation. An
// emulated radio whose profile names no source has those of every emulated radio,
// [EmulatedTelemetry].
func (p *Profile) Sources(emulated bool) []Telemetry {
	var out []Telemetry
	stated := false
	for _, t := range p.Telemetry {
		if t.On == OnBoth || emulated == (t.On == OnEmulated) {
			out = append(out, t)
			stated = stated || t.Host == TargetRadio
		}
	}
	if emulated && !stated {
		out = append(out, EmulatedTelemetry()...)
	}
	return out
}

// Address is the address that is asked for the readings, as "host:port"; empty where
// none is, because the node itself has them.
func (t *Telemetry) Address() string {
	if t.Host == "" {
		return ""
	}
	return net.JoinHostPort(t.Host, strconv.Itoa(t.Port))
}

// TelemetryAddresses are the addresses that a node with this radio, or with its
// emulation, may ask, in the order of the sources. Those at [TargetRadio] are in it
// under that name, too: a node's technician can say at which address the radio is.
func (p *Profile) TelemetryAddresses(emulated bool, r Role) []string {
	var out []string
	add := func(t Telemetry) {
		if a := t.Address(); a != "" && !slices.Contains(out, a) {
			out = append(out, a)
		}
	}
	for _, t := range p.Sources(emulated) {
		add(t)
		if t.Host == TargetRadio && !emulated {
			t.Host = p.Attach.For(r).Radio
			add(t)
		}
	}
	return out
}

// FigureOf returns the figure of that name; false where there is none or its value
// is unknown.
func (p *Profile) FigureOf(name string) (Figure, bool) {
	i := slices.IndexFunc(p.Figures, func(f Figure) bool { return f.Name == name })
	if i < 0 || p.Figures[i].Unknown {
		return Figure{}, false
	}
	return p.Figures[i], true
}

// NominalRate is the radio's rate in bit/s, as it is emulated or as its figures have it; 0
// where it is not known.
func (p *Profile) NominalRate(emulated bool) float64 {
	if emulated && p.Emulation != nil {
		return p.Emulation.RateBitsPerSecond
	}
	f, known := p.FigureOf("rate")
	if !known {
		return 0
	}
	return f.Value * map[string]float64{"bit/s": 1, "kbit/s": 1e3, "Mbit/s": 1e6}[f.Unit]
}
