package faults

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"linktrial/internal/faultlog"
	"linktrial/internal/radio"
	"linktrial/internal/yamldoc"
	"linktrial/lab/field"
)

// Injection is one fault to be injected.
type Injection struct {
	At     time.Duration // after the campaign of faults has begun
	Kind   faultlog.Kind
	Target faultlog.Target
	Node   radio.Role // where the target is one of a node
	// For is how long the fault lasts; 0 for kinds that are done at once.
	For time.Duration
	// Protocol restricts the target driver to processes of this driver; empty: any.
	Protocol string
	// MTUBytes is what the kind mtu sets, Delay what control-slow adds to each packet,
	// and Loss the share of packets, 0 to 1, that control-lossy loses.
	MTUBytes int
	Delay    time.Duration
	Loss     float64
	// Step is by how much clock-step sets the clock forwards, or back where it is negative.
	Step time.Duration
	// Block is what the kind filter drops.
	Block field.Block
	// CopyOnWrite is whether overwriting takes room as well, of database-full.
	CopyOnWrite bool
	// Pick chooses among several driver processes.
	Pick uint32
}

// String is the fault for people: "stop driver of server for 3s".
func (i Injection) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s", i.Kind, i.Target)
	if i.Protocol != "" {
		fmt.Fprintf(&b, " %s", i.Protocol)
	}
	if i.Node != "" {
		fmt.Fprintf(&b, " of %s", i.Node)
	}
	if i.MTUBytes > 0 {
		fmt.Fprintf(&b, " %d bytes", i.MTUBytes)
	}
	if i.Delay > 0 {
		fmt.Fprintf(&b, " by %s", i.Delay)
	}
	if i.Loss > 0 {
		fmt.Fprintf(&b, " with loss %g", i.Loss)
	}
	if i.Step != 0 {
		fmt.Fprintf(&b, " by %s", signed(i.Step))
	}
	if i.Block != "" {
		fmt.Fprintf(&b, " that drops %s", i.Block)
	}
	if i.CopyOnWrite {
		b.WriteString(" with copies on write")
	}
	if i.For > 0 {
		fmt.Fprintf(&b, " for %s", i.For)
	}
	return b.String()
}

// signed is a duration with its sign.
func signed(d time.Duration) string {
	if d > 0 {
		return "+" + d.String()
	}
	return d.String()
}

// Nodes is the nodes of a lab that faults can hit.
type Nodes struct {
	All []radio.Role
	// Drivers is those on which drivers run during a plan.
	Drivers []radio.Role
	// Lab is what the nodes are, which decides what exists.
	Lab Place
}

// Place is what the nodes of a lab are.
type Place int

// The places.
const (
	Emulated Place = iota // nodes with emulated radios, in real time
	Virtual               // nodes with emulated radios, in virtual time
	RealPath              // nodes with plain radios, in real time
)

// with returns the nodes that have a target.
func (n Nodes) with(t faultlog.Target) []radio.Role {
	switch t {
	case faultlog.Driver:
		return n.Drivers
	case faultlog.Listener:
		return slices.DeleteFunc(slices.Clone(n.Drivers), func(r radio.Role) bool { return r == radio.RoleClient })
	}
	return n.All
}

// shape is what a kind of fault can hit and needs to know.
type shape struct {
	kind    faultlog.Kind
	targets []faultlog.Target // the first is meant where none is named, if there is no other
	lasts   bool              // it lasts for a time that is stated
	value   string            // the key of a value that only some kinds have; empty: none
	plain   bool              // only plain radios have it
}

// value is a number that faults of some kinds have.
type value struct {
	// read reads it; def sets the one where none is stated.
	read func(v yamldoc.Value, i *Injection)
	def  func(i *Injection)
}

// defaultDelay is the delay of a fault where none is stated.
func defaultDelay(k faultlog.Kind) time.Duration {
	if k == faultlog.DiskSlow {
		return DefaultDiskDelay
	}
	return DefaultDelay
}

// values are those numbers by their keys.
var values = map[string]value{
	"mtu": {
		read: func(v yamldoc.Value, i *Injection) { i.MTUBytes = int(v.Int(DefaultMTU, minMTU, maxMTU)) },
		def:  func(i *Injection) { i.MTUBytes = DefaultMTU },
	},
	"drop": {
		read: func(v yamldoc.Value, i *Injection) {
			i.Block = field.Block(v.OneOf(string(field.Blocks()[0]), names(field.Blocks())...))
		},
		def: func(i *Injection) { i.Block = field.Blocks()[int(i.Pick)%len(field.Blocks())] },
	},
	"delay": {
		read: func(v yamldoc.Value, i *Injection) {
			i.Delay = upTo(v, time.Millisecond, MaxDelay, defaultDelay(i.Kind))
		},
		def: func(i *Injection) { i.Delay = defaultDelay(i.Kind) },
	},
	"copy_on_write": {
		read: func(v yamldoc.Value, i *Injection) { i.CopyOnWrite = v.Bool(false) },
		// Drawn: both kinds of file systems are common.
		def: func(i *Injection) { i.CopyOnWrite = i.Pick%2 == 1 },
	},
	"step": {
		read: func(v yamldoc.Value, i *Injection) { i.Step = step(v) },
		def:  func(i *Injection) { i.Step = steps[i.Pick%uint32(len(steps))] },
	},
	"loss": {
		read: func(v yamldoc.Value, i *Injection) { i.Loss = v.Float(DefaultLoss, minLoss, 1) },
		def:  func(i *Injection) { i.Loss = DefaultLoss },
	},
}

// processes is what a signal can hit.
var processes = []faultlog.Target{faultlog.Agent, faultlog.Driver, faultlog.Emulator, faultlog.Orchestrator, faultlog.Database}

// shapes are the kinds that are injected. The table in docs/faults.md is the same.
var shapes = []shape{
	{kind: faultlog.Kill, targets: processes},
	{kind: faultlog.Stop, targets: processes, lasts: true},
	{kind: faultlog.Restart, targets: []faultlog.Target{faultlog.Agent, faultlog.Orchestrator}},
	{kind: faultlog.Gone, targets: []faultlog.Target{faultlog.Orchestrator, faultlog.Database}, lasts: true},
	{kind: faultlog.PowerCut, targets: []faultlog.Target{faultlog.Node}, lasts: true},
	{kind: faultlog.ControlCut, targets: []faultlog.Target{faultlog.ControlLink}, lasts: true},
	{kind: faultlog.ControlSlow, targets: []faultlog.Target{faultlog.ControlLink}, lasts: true, value: "delay"},
	{kind: faultlog.ControlLossy, targets: []faultlog.Target{faultlog.ControlLink}, lasts: true, value: "loss"},
	{kind: faultlog.ControlOneWay, targets: []faultlog.Target{faultlog.ControlLink}, lasts: true},
	{kind: faultlog.RadioDown, targets: []faultlog.Target{faultlog.Radio}, lasts: true},
	{kind: faultlog.MTU, targets: []faultlog.Target{faultlog.Radio}, lasts: true, value: "mtu"},
	{kind: faultlog.Address, targets: []faultlog.Target{faultlog.Radio}, lasts: true},
	{kind: faultlog.DiskFull, targets: []faultlog.Target{faultlog.Disk}, lasts: true},
	{kind: faultlog.DiskSlow, targets: []faultlog.Target{faultlog.Disk}, lasts: true, value: "delay"},
	{kind: faultlog.DiskError, targets: []faultlog.Target{faultlog.Disk}, lasts: true},
	{kind: faultlog.DatabaseReadOnly, targets: []faultlog.Target{faultlog.Database}, lasts: true},
	{kind: faultlog.DatabaseFull, targets: []faultlog.Target{faultlog.Database}, lasts: true, value: "copy_on_write"},
	{kind: faultlog.ClockStep, targets: []faultlog.Target{faultlog.Clock}, lasts: true, value: "step"},
	{kind: faultlog.DuplicateAgent, targets: []faultlog.Target{faultlog.Agent}, lasts: true},
	{kind: faultlog.DuplicateOrchestrator, targets: []faultlog.Target{faultlog.Orchestrator}},
	{kind: faultlog.InterfaceNewIndex, targets: []faultlog.Target{faultlog.Radio}, lasts: true, plain: true},
	{kind: faultlog.InterfaceGone, targets: []faultlog.Target{faultlog.Radio}, lasts: true, plain: true},
	{kind: faultlog.InterfaceRenamed, targets: []faultlog.Target{faultlog.Radio}, lasts: true, plain: true},
	{kind: faultlog.NoCarrier, targets: []faultlog.Target{faultlog.Radio}, lasts: true, plain: true},
	{kind: faultlog.AddressLost, targets: []faultlog.Target{faultlog.Radio}, lasts: true, plain: true},
	{kind: faultlog.AddressDuplicate, targets: []faultlog.Target{faultlog.Radio}, lasts: true, plain: true},
	{kind: faultlog.MTUHole, targets: []faultlog.Target{faultlog.Radio}, lasts: true, value: "mtu", plain: true},
	{kind: faultlog.Route, targets: []faultlog.Target{faultlog.Path}, lasts: true, plain: true},
	{kind: faultlog.Filter, targets: []faultlog.Target{faultlog.Path}, lasts: true, value: "drop", plain: true},
	{kind: faultlog.NAT, targets: []faultlog.Target{faultlog.Path}, lasts: true, plain: true},
	{kind: faultlog.PortTaken, targets: []faultlog.Target{faultlog.Listener}, lasts: true, plain: true},
	{kind: faultlog.Suspend, targets: []faultlog.Target{faultlog.Node}, lasts: true, plain: true},
}

func shapeOf(kind faultlog.Kind) *shape {
	i := slices.IndexFunc(shapes, func(s shape) bool { return s.kind == kind })
	if i < 0 {
		return nil
	}
	return &shapes[i]
}

// built returns the names of the kinds that are injected.
func built() []string {
	out := make([]string, len(shapes))
	for i, s := range shapes {
		out[i] = string(s.kind)
	}
	return out
}

// unknownKind says what is wrong with the name of a kind that has no shape; empty:
// nothing.
func unknownKind(name string) string {
	if shapeOf(faultlog.Kind(name)) != nil {
		return ""
	}
	return fmt.Sprintf("unknown %.40q; there are %s", name, strings.Join(built(), ", "))
}

// ofNode reports whether a target is one of a node.
func ofNode(t faultlog.Target) bool {
	switch t {
	case faultlog.Emulator, faultlog.Orchestrator, faultlog.Database:
		return false
	}
	return true
}

func names[T ~string](all []T) []string {
	out := make([]string, len(all))
	for i, v := range all {
		out[i] = string(v)
	}
	return out
}

// Choice is a kind of fault with what it hits.
type Choice struct {
	Kind   faultlog.Kind
	Target faultlog.Target
}

func (c Choice) String() string { return string(c.Kind) + ":" + string(c.Target) }

// Choices returns every kind with every target that it can hit.
func Choices() []Choice {
	var out []Choice
	for _, s := range shapes {
		for _, t := range s.targets {
			out = append(out, Choice{s.kind, t})
		}
	}
	return out
}

// maxChoices bounds what is read of a list of kinds.
const maxChoices = 100

// ParseChoices reads kinds as people list them: "kill:agent" or, for all that a kind
// can hit, "kill".
func ParseChoices(list []string) ([]Choice, error) {
	if len(list) > maxChoices {
		return nil, fmt.Errorf("%d kinds of faults, expected at most %d", len(list), maxChoices)
	}
	var out []Choice
	for _, text := range list {
		kind, target, one := strings.Cut(text, ":")
		if wrong := unknownKind(kind); wrong != "" {
			return nil, fmt.Errorf("kind of faults %s", wrong)
		}
		s := shapeOf(faultlog.Kind(kind))
		targets := s.targets
		if one {
			if !slices.Contains(targets, faultlog.Target(target)) {
				return nil, fmt.Errorf("%s cannot hit %.40q; it can hit %s", kind, target, strings.Join(names(targets), ", "))
			}
			targets = []faultlog.Target{faultlog.Target(target)}
		}
		for _, t := range targets {
			if c := (Choice{s.kind, t}); !slices.Contains(out, c) {
				out = append(out, c)
			}
		}
	}
	return out, nil
}
