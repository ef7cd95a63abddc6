package telemetrysource

import (
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"linktrial/internal/yamldoc"
)

// Bounds of telemetry: beyond them reading a source would disturb the node.
const (
	minPoll, maxPoll = 200 * time.Millisecond, time.Hour

	// MaxSources is how many sources a profile may have.
	MaxSources = 16

	maxValues = 64
)

var (
	nameForm  = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,47}$`)
	valueForm = regexp.MustCompile(`^[a-z][a-z0-9_]{0,47}$`)
	unitForm  = regexp.MustCompile(`^[A-Za-z0-9/%°µ²-]{1,16}$`)
	envForm   = regexp.MustCompile(`^[A-Z][A-Z0-9_]{0,63}$`)
	hostForm  = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9.-]{0,252}[A-Za-z0-9])?$`)
)

// Parse reads a profile's list of sources.
func Parse(v yamldoc.Value) []Source {
	var out []Source
	seen := map[string]bool{}
	list := v.List()
	if len(list) > MaxSources {
		v.Problem("%d sources, expected at most %d", len(list), MaxSources)
		list = list[:MaxSources]
	}
	for _, e := range list {
		s := parseSource(e)
		if seen[s.Name] && s.Name != "" {
			e.Problem("source %q is given twice", s.Name)
		}
		seen[s.Name] = true
		out = append(out, s)
	}
	return out
}

// common are the keys that a source of every kind has.
var common = []string{"name", "kind", "on", "source", "poll", "interval"}

func parseSource(v yamldoc.Value) Source {
	keys, kinds := slices.Clone(common), []string{}
	for _, d := range list {
		kinds = append(kinds, string(d.Kind))
		for _, k := range d.Keys {
			if !slices.Contains(keys, k.Name) {
				keys = append(keys, k.Name)
			}
		}
	}
	m := v.Mapping(keys...)
	s := Source{
		Name:   name(m.Field("name")),
		Kind:   Kind(m.Field("kind").Required().OneOf("", kinds...)),
		On:     On(m.Field("on").OneOf(string(OnReal), string(OnReal), string(OnEmulated), string(OnBoth))),
		Origin: origin(m.Field("source")),
	}
	d := Of(s.Kind)
	if d == nil {
		d = &Definition{Poll: PollBetweenTrials, Interval: radioInterval}
	} else {
		for _, key := range keys[len(common):] {
			if f := m.Field(key); f.Present() && !d.has(key) {
				f.Problem("a source of kind %s has none; it belongs to %s", s.Kind, withKey(key))
			}
		}
	}
	s.Poll = Poll(m.Field("poll").OneOf(string(d.Poll), string(PollBetweenTrials), string(PollAlways)))
	every := m.Field("interval").Duration(d.Interval)
	if every < minPoll || every > maxPoll {
		m.Field("interval").Problem("expected from %s to %s, found %s", minPoll, maxPoll, every)
	}
	s.IntervalNS = every.Nanoseconds()
	if d.settings == nil {
		return s
	}
	s.Settings, s.Port = d.settings(), d.Port
	s.Settings.parse(m, &s) // may know another port
	if d.has("target") {
		f := m.Field("target")
		if d.Host == "" {
			f = f.Required()
		}
		s.Host, s.Port = target(f, d.Host, s.Port)
	}
	if d.PlaceKey != "" {
		s.Values = d.values(m.Field("values"))
	}
	return s
}

// name is the name of a source, which columns and files have.
func name(v yamldoc.Value) string {
	s := v.Required().String("")
	if s != "" && !nameForm.MatchString(s) {
		v.Problem("%q, expected lower-case letters, digits and hyphens, at most 48", s)
	}
	return s
}

// origin is where it is known from that the radio has the source.
func origin(v yamldoc.Value) string {
	s := strings.TrimSpace(v.Required().String(""))
	if v.Present() && s == "" {
		v.Problem("expected where it is known from that the radio has this, found nothing")
	}
	return s
}

// target reads "host", "host:port" or "[v6]:port".
func target(v yamldoc.Value, host string, port int) (string, int) {
	s := v.String(host)
	if ap, err := netip.ParseAddrPort(s); err == nil && ap.Port() > 0 {
		return ap.Addr().String(), int(ap.Port())
	}
	if a, err := netip.ParseAddr(s); err == nil {
		return a.String(), port
	}
	name, digits, has := strings.Cut(s, ":")
	if has {
		n, err := strconv.ParseUint(digits, 10, 16)
		if err != nil || n == 0 {
			v.Problem(`expected a host such as "radio" or "192.0.2.1:161", found %q`, s)
			return host, port
		}
		port = int(n)
	}
	if !hostForm.MatchString(name) {
		v.Problem(`expected a host such as "radio" or "192.0.2.1:161", found %q`, s)
		return host, port
	}
	return name, port
}

// env is the name of an environment variable.
func env(v yamldoc.Value) string {
	s := v.String("")
	if s != "" && !envForm.MatchString(s) {
		v.Problem("expected the name of an environment variable of the agent, in capitals, found %q: secrets are no part of a profile", s)
		return ""
	}
	return s
}

// values reads what is read of a source.
func (d *Definition) values(v yamldoc.Value) []Value {
	var out []Value
	seen := map[string]bool{}
	list := v.Required().List()
	if v.IsList() && (len(list) == 0 || len(list) > maxValues) {
		v.Problem("%d values, expected 1 to %d", len(list), maxValues)
		list = nil
	}
	for _, e := range list {
		x := d.value(e)
		if seen[x.Name] && x.Name != "" {
			e.Problem("value %q is given twice", x.Name)
		}
		seen[x.Name] = true
		out = append(out, x)
	}
	return out
}

func (d *Definition) value(v yamldoc.Value) Value {
	m := v.Mapping("name", d.PlaceKey, "unit", "scale", "counter")
	x := Value{Name: m.Field("name").Required().String(""), Scale: m.Field("scale").Float(1, -1e18, 1e18), Counter: m.Field("counter").Bool(false)}
	if m.Field("name").Present() && !valueForm.MatchString(x.Name) {
		m.Field("name").Problem("%q, expected lower-case letters, digits and underscores, at most 48", x.Name)
	}
	if f := m.Field("unit"); f.Present() {
		if x.Unit = f.String(""); !unitForm.MatchString(x.Unit) {
			f.Problem(`expected a unit such as "dB" or "kbit/s", found %q`, x.Unit)
		}
	}
	if f := m.Field("scale"); f.Present() && x.Scale == 0 {
		f.Problem("a scale of 0 makes every value 0")
	}
	if f := m.Field(d.PlaceKey).Required(); f.Present() {
		x.Place = d.Place(f)
	}
	return x
}
