package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
	"linktrial/internal/yamldoc"
	"linktrial/protocols/contract"
)

// Catalog is what a plan may name. Lookups return nil for what does not exist;
// the lists are sorted and are what messages offer.
type Catalog interface {
	Profile(name string) *radio.Profile
	Profiles() []string
	// Vary is a profile with some parameters of its emulation changed.
	Vary(profile string, changes []radio.Change) (*radio.Profile, error)
	Topology(name string) *radio.Topology
	Topologies() []string
	Manifest(protocol string) *contract.Manifest
	Protocols() []string
}

// Plan is a plan with every name resolved.
type Plan struct {
	Name  string
	Title string
	Notes []string // the author's, then what Parse has to say
	Hash  string   // SHA-256 of the text

	Cells      []Cell               // in the order of the plan
	Treatments []runsheet.Treatment // in the order of the plan, missing ones included, without ports
	Mixes      []Mix
	Groups     []string // names, in the order of the plan; none where it has no groups

	Iterations     int // of cells whose group states none
	Order          TreatmentOrder
	Seed           uint64
	Limits         runsheet.Limits // of cells whose group states none
	Valid          *runsheet.Valid // of cells whose group states none; nil: no rules
	Control        runsheet.Control
	ControlShare   float64 // of the trials' time, for windows of in-band control; 0: the default
	SampleInterval time.Duration
	Capture        bool

	// Expected is the reasons that the plan gives for treatments that may be
	// missing, by name: a driver or a node may have them all the same.
	Expected map[string]string

	// Published is values of a paper for treatments and cells of the plan, in
	// the form of breedy-2015's Table 2; PublishedValues is those in any other.
	Published       []Published
	PublishedValues []PublishedValue
}

// Cell is one run to be: one radio, one topology, one transfer size, one
// value for every axis of its sweep.
type Cell struct {
	Radio     *radio.Profile // with the settings applied
	Topology  *radio.Topology
	SizeBytes int64

	Group    string
	Label    string // of the settings, for people; empty without a sweep
	Settings []runsheet.Setting

	Treatments []runsheet.Treatment // with the settings applied; those that have trials of their own
	Listeners  []runsheet.Treatment // those that only flows of mixes use
	Mixes      []Mix
	Flows      []FlowSpec // of one trial of a treatment
	Probes     []ProbeSpec

	Iterations     int
	Limits         runsheet.Limits
	Stop           *runsheet.Stop  // rule to stop by; nil: all iterations are run
	Valid          *runsheet.Valid // rules of validity; nil: none
	Require        []runsheet.Requirement
	SampleInterval time.Duration

	// Where is the place in the plan that makes the cell, for problems of it.
	Where Place
}

// Place is a place in a plan's text.
type Place struct {
	File         string
	Line, Column int
}

// Problem is a problem with what is made at the place.
func (p Place) Problem(message string) yamldoc.Problems {
	return yamldoc.Problems{yamldoc.At(p.File, p.Line, p.Column, "%s", message)}
}

// Condition is an axis and one of its values. Axes are radio, topology, size
// and those of the sweep.
type Condition struct {
	Axis  string `json:"axis"`
	Value string `json:"value"`
}

// Mix is a trial whose flows are of several treatments.
type Mix struct {
	Name    string
	Label   string
	Missing string // the reason, where one of its treatments is missing
	Flows   []FlowSpec
	// Probes are its own in place of the cell's, where OwnProbes.
	Probes    []ProbeSpec
	OwnProbes bool
}

// FlowSpec is a number of like flows of a trial.
type FlowSpec struct {
	Treatment string // of a mix; empty: the trial's
	Count     int
	From, To  radio.Role
	Start     time.Duration // of the first, after the trial's start
	Spacing   time.Duration // between one and the next
	SizeBytes int64         // 0 with Duration 0: the cell's
	Duration  time.Duration // 0: a transfer of SizeBytes
	// OnMean and IdleMean are the means of exponentially drawn times; 0: no on/off source.
	OnMean, IdleMean time.Duration
}

// Order says how the treatments of an iteration follow each other.
type TreatmentOrder string

const (
	OrderFixed  TreatmentOrder = "fixed"  // as the plan lists them, every time
	OrderRandom TreatmentOrder = "random" // shuffled anew in every iteration, from the seed
	// OrderCounterbalanced goes through the rows of a Williams design: over all
	// rows every treatment follows every other equally often.
	OrderCounterbalanced TreatmentOrder = "counterbalanced"
)

// PublishedFor finds the published values for a treatment of a cell, or nil.
func (p *Plan) PublishedFor(radio, topology, treatment string) *Published {
	for i := range p.Published {
		if r := &p.Published[i]; r.Radio == radio && r.Topology == topology && r.Treatment == treatment {
			return r
		}
	}
	return nil
}

// Runnable is the names of the treatments that are not missing, in plan order.
func (p *Plan) Runnable() []string {
	var out []string
	for _, t := range p.Treatments {
		if t.Missing == "" {
			out = append(out, t.Name)
		}
	}
	return out
}

// Protocols is the drivers that the treatments need which are not missing, each
// once: those of their ends, and of the relay processes that they pass.
func (p *Plan) Protocols() []string {
	var out []string
	add := func(protocol string) {
		if !slices.Contains(out, protocol) {
			out = append(out, protocol)
		}
	}
	for _, t := range p.Treatments {
		if t.Missing != "" {
			continue
		}
		add(t.Protocol)
		for _, v := range t.Via {
			add(v.Protocol)
		}
	}
	return out
}

// Runnable is what has trials in the cell, treatments and then mixes, in plan order.
func (c *Cell) Runnable() []string {
	var out []string
	for _, t := range c.Treatments {
		if t.Missing == "" {
			out = append(out, t.Name)
		}
	}
	for _, m := range c.Mixes {
		if m.Missing == "" {
			out = append(out, m.Name)
		}
	}
	return out
}

// Missing is the names of the treatments and mixes that cannot be run, in plan order.
func (p *Plan) Missing() []string {
	var out []string
	for _, t := range p.Treatments {
		if t.Missing != "" {
			out = append(out, t.Name)
		}
	}
	for _, m := range p.Mixes {
		if m.Missing != "" {
			out = append(out, m.Name)
		}
	}
	return out
}

// Trials is how many trials all cells have.
func (p *Plan) Trials() int {
	n := 0
	for i := range p.Cells {
		n += p.Cells[i].Iterations * len(p.Cells[i].Runnable())
	}
	return n
}

// Sheet is the cell as its run sheet names it.
func (c *Cell) Sheet(index int) runsheet.Cell {
	return runsheet.Cell{Index: index, Radio: c.Radio.Name, Topology: c.Topology.Name, SizeBytes: c.SizeBytes,
		Group: c.Group, Label: c.Label, Settings: c.Settings}
}

// Meets reports whether a run has all these values; every run meets an empty list.
func Meets(c *runsheet.Cell, conditions []Condition) bool {
	return !slices.ContainsFunc(conditions, func(k Condition) bool { return c.At(k.Axis) != k.Value })
}

// Summary is one line for people.
func (p *Plan) Summary() string {
	count := func(n int, one, many string) string {
		if n == 1 {
			return "1 " + one
		}
		return fmt.Sprintf("%d %s", n, many)
	}
	s := fmt.Sprintf("%s: %s, %s, %s, %s", p.Name,
		count(len(p.Cells), "run", "runs"), count(len(p.Runnable()), "treatment", "treatments"),
		count(p.Iterations, "iteration", "iterations"), count(p.Trials(), "trial", "trials"))
	if m := p.Missing(); len(m) > 0 {
		s += "; missing: " + strings.Join(m, ", ")
	}
	return s
}
