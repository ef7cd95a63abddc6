package telemetrysource

import (
	"net"
	"strconv"
	"time"
)

// Poll says when a source may be read.
type Poll string

const (
	// PollBetweenTrials: only while no trial runs, so that nothing of a trial
	// shares the radio with it.
	PollBetweenTrials Poll = "between-trials"
	// PollAlways: the way to the source is no part of the radio network.
	PollAlways Poll = "always"
)

// On says on which nodes a source is read.
type On string

const (
	OnReal     On = "real"
	OnEmulated On = "emulated"
	OnBoth     On = "both"
)

// TargetRadio as a source's host is the radio itself: on a real node the address that the
// profile's attachment or the node's technician gives, on an emulated one where the
// emulator answers for the node's radio.
const TargetRadio = "radio"

// Source is one source of readings of a radio or of the node beside it. As JSON it is one
// object with the keys of its settings between those below and the values.
type Source struct {
	Name   string `json:"name"`
	Kind   Kind   `json:"kind"`
	On     On     `json:"on"`
	Origin string `json:"source"` // the document that says that the radio has this
	Poll   Poll   `json:"poll"`
	// IntervalNS is the least time between two readings, in nanoseconds.
	IntervalNS int64 `json:"interval_ns"`
	// Host is [TargetRadio], a name or an address, of kinds with the key target.
	Host string `json:"host,omitempty"`
	Port int    `json:"port,omitempty"`
	// Settings are what only sources of this kind have; nil: nothing is stated.
	Settings Settings `json:"-"`
	// Values to read; none where the kind gives them.
	Values []Value `json:"-"`
}

// Value is one value of a source.
type Value struct {
	Name  string // "snr"
	Place string // where the source has it, by the kind's [Definition.PlaceKey]
	Unit  string // after scaling: "dB"
	// Scale is what the number read is multiplied with.
	Scale float64
	// Counter marks a number that only grows: its rate is shown.
	Counter bool
}

// Reading is one value as it was read.
type Reading struct {
	Name    string  `json:"name"`
	Value   float64 `json:"value"`
	Unit    string  `json:"unit,omitempty"`
	Counter bool    `json:"counter,omitempty"` // only grows
}

// Address is what an agent opens for the readings: "host:port", or what else sources of the
// kind are reached by; empty where the node itself has them.
func (s *Source) Address() string {
	if a, other := s.Settings.(interface{ address() string }); other {
		return a.address()
	}
	if s.Host == "" {
		return ""
	}
	return net.JoinHostPort(s.Host, strconv.Itoa(s.Port))
}

// Way says for people how the source is read: "SNMP 2c at the radio, port 161".
func (s *Source) Way() string {
	return s.settings().way(s)
}

// settings are those of the source, or of its kind where nothing is stated.
func (s *Source) settings() Settings {
	if s.Settings != nil {
		return s.Settings
	}
	if d := Of(s.Kind); d != nil {
		return d.settings()
	}
	return &unknown{}
}

// When says for people when the source is read.
func (s *Source) When() string {
	when := "between trials"
	if s.Poll == PollAlways {
		when = "during trials too"
	}
	return "every " + pause(time.Duration(s.IntervalNS)) + " at most, " + when
}

// pause is a time between two readings for people: "5 s", "2 min".
func pause(d time.Duration) string {
	if d >= time.Minute && d%time.Minute == 0 {
		return strconv.Itoa(int(d.Minutes())) + " min"
	}
	return strconv.FormatFloat(d.Seconds(), 'g', -1, 64) + " s"
}

// Own is a source of the kind that a node has of itself, without a profile.
func Own(k Kind, name, why string) Source {
	d := Of(k)
	return Source{Name: name, Kind: k, On: OnBoth, Origin: why, Poll: d.Poll, IntervalNS: d.Interval.Nanoseconds(), Host: d.Host, Port: d.Port, Settings: d.settings()}
}
