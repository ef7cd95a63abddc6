package faults

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"linktrial/internal/faultlog"
	"linktrial/internal/radio"
	"linktrial/internal/yamldoc"
)

// Bounds of a schedule.
const (
	// MaxScheduled is the largest number of faults in a schedule.
	MaxScheduled = 10_000
	// MaxAt is the latest time of a fault, and MaxFor the longest that one lasts.
	MaxAt, MaxFor = 30 * 24 * time.Hour, 24 * time.Hour
	// MinEvery and MaxEvery bound the mean interval of faults from a seed.
	MinEvery, MaxEvery = 100 * time.Millisecond, 24 * time.Hour
	// DefaultEvery is the mean interval where none is stated.
	DefaultEvery = 20 * time.Second
)

// Bounds of the MTU that a fault sets, in bytes: IPv4's least one (RFC 791, section
// 3.2) to the largest that drivers know, and the one where none is stated.
const (
	minMTU, maxMTU = 68, 9000
	DefaultMTU     = 576
)

// Bounds of the delay that a fault adds to each packet, and of the share of packets
// that it loses, and those where none is stated: a link over a satellite that is
// loaded, and one at the edge of its range.
const (
	MaxDelay     = time.Minute
	DefaultDelay = 2 * time.Second
	// DefaultDiskDelay is the time that each use of a slow disk takes longer: what a
	// memory card takes that is being written to its limit.
	DefaultDiskDelay = 300 * time.Millisecond
	minLoss          = 0.001
	DefaultLoss      = 0.3
	// MaxStep is the largest step of a clock, DefaultStep the one where none is stated: a
	// clock whose time zone is wrong.
	MaxStep     = 10 * year
	DefaultStep = time.Hour
)

const year = 365 * 24 * time.Hour

// steps are those that are drawn from a seed: of a time service that begins late, of a
// time zone, and of a clock whose battery was empty.
var steps = []time.Duration{time.Second, -time.Second, time.Hour, -time.Hour, year, -year}

// Schedule is the faults of a campaign: those listed, and those drawn from a seed.
type Schedule struct {
	Faults []Injection // by time
	Random *Random     // nil: none
}

// Parse reads a schedule for a lab with the given nodes. The error, if any,
// is [yamldoc.Problems].
func Parse(file string, data []byte, nodes Nodes) (*Schedule, error) {
	d := yamldoc.Parse(file, data)
	r := d.Root().Mapping("faults", "random")
	if r.OK() && len(r.Keys()) == 0 {
		d.Root().Problem("expected faults, random, or both")
	}
	s := &Schedule{Random: random(r.Field("random"), nodes)}
	list := r.Field("faults").List()
	if len(list) > MaxScheduled {
		r.Field("faults").Problem("expected at most %d faults, found %d", MaxScheduled, len(list))
		list = nil
	}
	type placed struct {
		Injection
		v    yamldoc.Value
		line int
	}
	var all []placed
	for _, v := range list {
		i, ok := injection(v, nodes)
		i.Pick = uint32(len(all)) * 2654435761 // Knuth's multiplicative hash spreads the choices
		if line, _ := v.Position(); ok {
			all = append(all, placed{i, v, line})
		}
	}
	slices.SortStableFunc(all, func(a, b placed) int { return cmp.Compare(a.At, b.At) })
	lasting := map[place]placed{}
	for _, p := range all {
		for _, where := range placesOf(p.Injection) {
			if before, ok := lasting[where]; ok && before.At+before.For > p.At {
				p.v.Problem("begins at %s, while the fault of line %d, which hits the same, lasts until %s", p.At, before.line, before.At+before.For)
			}
			lasting[where] = p
		}
		s.Faults = append(s.Faults, p.Injection)
	}
	return s, d.Err()
}

// place is what faults cannot hit at the same time.
type place struct {
	target faultlog.Target
	node   radio.Role
}

// placesOf returns what a fault hits, always in the order in which it is held.
func placesOf(i Injection) []place {
	switch i.Kind {
	case faultlog.DuplicateOrchestrator, faultlog.DatabaseFull, faultlog.Gone:
		// A second orchestrator is refused because the first one has a claim on the
		// database, which it loses with each end of PostgreSQL. And an orchestrator that
		// is started again while its database has no room, or is gone, may end until that
		// is over; its database goes with it.
		return []place{{faultlog.Orchestrator, ""}, {faultlog.Database, ""}}
	}
	return []place{{i.Target, i.Node}}
}

// injection reads one fault, and reports whether it has no problem.
func injection(v yamldoc.Value, nodes Nodes) (Injection, bool) {
	m := v.Mapping(slices.Concat([]string{"at", "kind", "target", "node", "for", "driver"}, valueKeys())...)
	i := Injection{At: upTo(m.Field("at").Required(), 0, MaxAt, 0)}
	ok := m.Field("at").OK()
	kind := m.Field("kind").Required()
	name := kind.String("")
	if !kind.OK() {
		return i, false
	}
	if wrong := unknownKind(name); wrong != "" {
		kind.Problem("%s", wrong)
		return i, false
	}
	s := shapeOf(faultlog.Kind(name))
	i.Kind = s.kind
	target := m.Field("target")
	if len(s.targets) == 1 {
		i.Target = s.targets[0]
	} else {
		target.Required()
	}
	i.Target = faultlog.Target(target.OneOf(string(i.Target), names(s.targets)...))
	if i.Target == "" || target.Present() && !target.OK() {
		return i, false
	}
	if wrong := nodes.absent(i.Kind, func(c Choice) bool { return c.Target == i.Target }); wrong != "" {
		kind.Problem("%s %s", Choice{i.Kind, i.Target}, wrong)
		return i, false
	}
	return i, details(m, &i, s, nodes) && ok
}

// details reads what depends on kind and target.
func details(m yamldoc.Mapping, i *Injection, s *shape, nodes Nodes) bool {
	ok := true
	node := m.Field("node")
	switch {
	case ofNode(i.Target):
		i.Node = radio.Role(node.Required().OneOf("", names(nodes.with(i.Target))...))
		ok = i.Node != ""
	case node.Given():
		node.Problem("the target %s is not one of a node; remove it", i.Target)
		ok = false
	}
	long := m.Field("for")
	switch {
	case s.lasts:
		i.For = upTo(long.Required(), time.Millisecond, MaxFor, 0)
		ok = ok && i.For > 0
	case long.Given():
		long.Problem("%s is done at once; remove it", i.Kind)
		ok = false
	}
	for _, key := range valueKeys() {
		v := m.Field(key)
		switch {
		case s.value == key:
			values[key].read(v, i)
			ok = ok && (v.OK() || !v.Present())
		case v.Given():
			v.Problem("only %s can have one; remove it", kindsWith(key))
			ok = false
		}
	}
	driver := m.Field("driver")
	switch {
	case i.Target == faultlog.Driver:
		i.Protocol = driver.Label("")
	case driver.Given():
		driver.Problem("only the target driver has one; remove it")
		ok = false
	}
	return ok
}

// valueKeys returns the keys of [values], in the order of the alphabet.
func valueKeys() []string { return slices.Sorted(maps.Keys(values)) }

// kindsWith names the kinds that have a value.
func kindsWith(key string) string {
	var out []string
	for _, s := range shapes {
		if s.value == key {
			out = append(out, string(s.kind))
		}
	}
	return strings.Join(out, " and ")
}

// Hits reports whether a fault of the schedule can hit a target.
func (s *Schedule) Hits(t faultlog.Target) bool {
	return slices.ContainsFunc(s.Faults, func(i Injection) bool { return i.Target == t }) ||
		s.Random != nil && slices.ContainsFunc(s.Random.draws, func(d draw) bool { return d.Target == t })
}

// Injects reports whether faults of a kind can be injected.
func (s *Schedule) Injects(k faultlog.Kind) bool {
	return slices.ContainsFunc(s.Faults, func(i Injection) bool { return i.Kind == k }) ||
		s.Random != nil && slices.ContainsFunc(s.Random.draws, func(d draw) bool { return d.Kind == k })
}

// random reads the settings of faults that are drawn from a seed.
func random(v yamldoc.Value, nodes Nodes) *Random {
	if !v.Given() {
		return nil
	}
	m := v.Mapping("seed", "every", "kinds")
	seed := m.Field("seed").Required().Uint64(0)
	every := upTo(m.Field("every"), MinEvery, MaxEvery, DefaultEvery)
	var list []string
	field := m.Field("kinds")
	for _, k := range field.List() {
		list = append(list, k.String(""))
	}
	kinds, err := nodes.Parse(list)
	if err != nil && field.OK() {
		field.Problem("%v", err)
	}
	if field.OK() && len(list) == 0 {
		field.Problem("expected at least one kind; without the key all are drawn")
	}
	return NewRandom(seed, every, kinds, nodes)
}

// step reads by how much a clock steps.
func step(v yamldoc.Value) time.Duration {
	d := v.SignedDuration(DefaultStep)
	if v.OK() && (d.Abs() < time.Millisecond || d.Abs() > MaxStep) {
		v.Problem("expected 1ms to %s, forwards or with a minus sign back, found %s", MaxStep, d)
		return DefaultStep
	}
	return d
}

// upTo reads a duration within bounds.
func upTo(v yamldoc.Value, least, most, def time.Duration) time.Duration {
	d := v.Duration(def)
	if v.OK() && (d < least || d > most) {
		v.Problem("expected %s to %s, found %s", least, most, d)
		return def
	}
	return d
}
