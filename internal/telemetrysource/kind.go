package telemetrysource

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"linktrial/internal/yamldoc"
)

// Kind is the way by which a source is read. The list is [Kinds].
type Kind string

// About is what the readings of a kind are of.
type About int

const (
	AboutRadio    About = iota // rules of validity on readings of the radio are about it
	AboutNode                  // battery and temperature of the laptop
	AboutPosition              // where the node is: latitude and longitude
)

// Definition is one kind of source: all that the rest of Linktrial knows of it.
type Definition struct {
	Kind  Kind
	Title string // for people: "SNMP"
	Help  string // for documents, what is read: "a JSON document"
	About About

	// Keys are those of a profile beside what all sources have: "target", "values", and
	// the kind's own, each with its meaning in the documents.
	Keys []Key
	// Place reads where a value is, of kinds with values; PlaceKey is its key in the
	// profile ("oid"), PlaceTitle the head of its column.
	Place      func(v yamldoc.Value) string
	PlaceKey   string
	PlaceTitle string
	Tells      string // what a source without values tells: "latitude, longitude"

	// Poll, Interval, Host and Port are what holds where the profile states nothing. A
	// kind with the key target and no Host demands it.
	Poll     Poll
	Interval time.Duration
	Host     string
	Port     int

	// Remedy is what a technician does where a source does not answer; empty: nothing is
	// wrong with a node that has none.
	Remedy string

	settings func() Settings
}

// Key is a key of a source in a radio profile.
type Key struct{ Name, Meaning string }

// Settings are what sources of one kind have for themselves, and how they are read. They
// are pointers to structures whose fields JSON can hold.
type Settings interface {
	// parse reads the kind's keys.
	parse(m yamldoc.Mapping, s *Source)
	// way is [Source.Way].
	way(s *Source) string
	// read asks the source once, at host where it has one, within ctx.
	read(ctx context.Context, s *Source, host string, n *Node) ([]Reading, error)
}

// list is every kind, in the order of documents.
var list = []*Definition{&snmpKind, &httpKind, &serialKind, &gpsdKind, &hostKind}

// Kinds is every kind, in the order of documents.
func Kinds() []*Definition { return slices.Clone(list) }

// Of is the kind of that name; nil: there is none.
func Of(k Kind) *Definition {
	i := slices.IndexFunc(list, func(d *Definition) bool { return d.Kind == k })
	if i < 0 {
		return nil
	}
	return list[i]
}

// Which is the kinds whose readings are about something.
func Which(about About) (out []Kind) {
	for _, d := range list {
		if d.About == about {
			out = append(out, d.Kind)
		}
	}
	return out
}

// Is reports whether readings of a kind are about something.
func (k Kind) Is(about About) bool { d := Of(k); return d != nil && d.About == about }

// NewSettings is the settings of a source of the kind of which nothing is stated.
func (d *Definition) NewSettings() Settings { return d.settings() }

func (d *Definition) has(key string) bool {
	return slices.ContainsFunc(d.Keys, func(k Key) bool { return k.Name == key })
}

// at is how a source is read and where: "SNMP 2c at the radio, port 161".
func (d *Definition) at(s *Source, title string, more ...string) string {
	out := title
	switch s.Host {
	case "":
	case TargetRadio:
		out += " at the radio"
	default:
		out += " at " + s.Host
	}
	if s.Port != 0 {
		out += ", port " + strconv.Itoa(s.Port)
	}
	for _, m := range more {
		if m != "" {
			out += ", " + m
		}
	}
	return out
}

// withKey names the kinds that have a key: "snmp, http and gpsd".
func withKey(key string) string {
	var names []string
	for _, d := range list {
		if d.has(key) {
			names = append(names, string(d.Kind))
		}
	}
	n := len(names)
	if n < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:n-1], ", ") + " and " + names[n-1]
}
