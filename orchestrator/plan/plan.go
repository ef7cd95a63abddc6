package plan

import (
	"fmt"
	"strings"
	"time"

	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
	"linktrial/protocols/contract"
)

// Catalog is what a plan may name. Lookups return nil for what does not exist;
// the lists are sorted and are what messages offer.
type Catalog interface {
	Profile(name string) *radio.Profile
	Profiles() []string
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

	Iterations     int
	Order          Order
	Seed           uint64
	Limits         runsheet.Limits
	Control        runsheet.Control
	SampleInterval time.Duration
	Capture        bool

	// Published is figures of a paper for treatments and cells of the plan.
	Published []Published
}

// Cell is one run to be: one radio, one topology, one transfer size.
type Cell struct {
	Radio     *radio.Profile
	Topology  *radio.Topology
	SizeBytes int64
}

// Order says how the treatments of an iteration follow each other.
type Order string

const (
	OrderFixed  Order = "fixed"  // as the plan lists them, every time
	OrderRandom Order = "random" // shuffled anew in every iteration, from the seed
	// OrderCounterbalanced goes through the rows of a Williams design: over all
	// rows every treatment follows every other equally often.
	OrderCounterbalanced Order = "counterbalanced"
)

// Published is one row of a paper's figures. Rates are in KB/s, 1 KB = 1024 bytes.
type Published struct {
	Radio     string  `json:"radio"`
	Topology  string  `json:"topology"`
	Treatment string  `json:"treatment"`
	N         int     `json:"n"`
	Average   float64 `json:"average_kb_per_second"`
	Maximum   float64 `json:"maximum_kb_per_second"`
	Minimum   float64 `json:"minimum_kb_per_second"`
	SD        float64 `json:"sd_kb_per_second"` // sample standard deviation
	Source    string  `json:"source"`
}

// PublishedFor finds the figures for a treatment of a cell, or nil.
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

// Missing is the names of the treatments whose protocol does not exist.
func (p *Plan) Missing() []string {
	var out []string
	for _, t := range p.Treatments {
		if t.Missing != "" {
			out = append(out, t.Name)
		}
	}
	return out
}

// Summary is one line for people.
func (p *Plan) Summary() string {
	count := func(n int, one, many string) string {
		if n == 1 {
			return "1 " + one
		}
		return fmt.Sprintf("%d %s", n, many)
	}
	n := len(p.Runnable())
	s := fmt.Sprintf("%s: %s, %s, %s, %s", p.Name,
		count(len(p.Cells), "run", "runs"), count(n, "treatment", "treatments"),
		count(p.Iterations, "iteration", "iterations"), count(len(p.Cells)*n*p.Iterations, "trial", "trials"))
	if m := p.Missing(); len(m) > 0 {
		s += "; missing: " + strings.Join(m, ", ")
	}
	return s
}
