package sheet

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"linktrial/executor/credible"
	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
	"linktrial/orchestrator/plan"
)

// The plan's first treatment has the first port; the others follow in plan order.
// A missing treatment keeps its place, so that the others' ports do not change when
// its driver comes to exist. The ports of relay processes are behind those of all
// treatments that a plan may have; each treatment has one for every role.
const (
	firstViaPort, viaPorts = runsheet.FirstPort + plan.MaxTreatments, 3

	_ = uint(runsheet.LastPort - (firstViaPort + viaPorts*plan.MaxTreatments - 1)) // they fit
)

// maxTraceRows bounds the channel traces of all sheets: each sheet holds its own.
const maxTraceRows = 1_000_000

// Compile makes one sheet of every cell, in the order of the plan. What no sheet
// can hold is [yamldoc.Problems] of the plan.
//
// Stop is asked before every iteration whether compiling is to end, such as ctx.Err;
// an error of it is returned as it is. It may be nil.
func Compile(stop func() error, p *plan.Plan) ([]*runsheet.Sheet, error) {
	if stop == nil {
		stop = func() error { return nil }
	}
	co := compiler{stop: stop, plan: p, networks: map[pair]*radio.Network{}}
	sheets := make([]*runsheet.Sheet, 0, len(p.Cells))
	for i := range p.Cells {
		c := &p.Cells[i]
		s, err := co.cell(i, c)
		switch {
		case co.stopped != nil:
			return nil, co.stopped
		case err != nil:
			return nil, c.Where.Problem(fmt.Sprintf("run %d (%s at %s): %v", i+1, c.Radio.Name, c.Topology.Name, err))
		}
		sheets = append(sheets, s)
	}
	return sheets, nil
}

// compiler compiles the cells of one plan.
type compiler struct {
	plan    *plan.Plan
	stop    func() error
	stopped error // what stop has returned

	networks  map[pair]*radio.Network // cells that differ in other things share one
	traceRows int                     // of the sheets so far
}

type pair struct {
	radio    *radio.Profile
	topology *radio.Topology
}

// network is the radio of a cell as emulated.
func (co *compiler) network(c *plan.Cell) (*radio.Network, error) {
	k := pair{c.Radio, c.Topology}
	n := co.networks[k]
	if n == nil {
		var err error
		if n, err = radio.Resolve(c.Radio, c.Topology); err != nil {
			return nil, err
		}
		co.networks[k] = n
	}
	for i := range n.Links {
		co.traceRows += traceRows(&n.Links[i].Channel) + traceRows(n.Links[i].Back)
	}
	if co.traceRows > maxTraceRows {
		return nil, fmt.Errorf("the channel traces of the runs up to this one have %d rows, at most %d fit in a plan", co.traceRows, maxTraceRows)
	}
	return n, nil
}

func traceRows(c *radio.Channel) (n int) {
	if c == nil {
		return 0
	}
	if c.Trace != nil {
		n = len(c.Trace.Loss)
	}
	for i := range c.Parts {
		n += traceRows(&c.Parts[i])
	}
	return n
}

func (co *compiler) cell(index int, c *plan.Cell) (*runsheet.Sheet, error) {
	p := co.plan
	s := &runsheet.Sheet{
		Format: runsheet.Format, Plan: p.Name, PlanHash: p.Hash,
		Cell:    c.Sheet(index),
		Control: p.Control, ControlShare: p.ControlShare, Order: string(p.Order),
		Radio: *c.Radio, Topology: *c.Topology,
		Limits: c.Limits, Valid: c.Valid, Require: c.Require, Stop: c.Stop, SampleInterval: c.SampleInterval, Seed: p.Seed, Capture: p.Capture,
	}
	if c.Radio.Emulation != nil {
		n, err := co.network(c)
		if err != nil {
			return nil, err
		}
		s.Network = n
		if err := checkHorizon(c, n); err != nil {
			return nil, err
		}
		if err := checkRequired(c, n); err != nil {
			return nil, err
		}
	}
	s.Treatments = treatments(p, c)
	for _, m := range c.Mixes {
		s.Mixes = append(s.Mixes, runsheet.Mix{Name: m.Name, Label: m.Label, Missing: m.Missing})
	}
	where := cellParts(c)
	runnable := c.Runnable()
	var rows [][]int
	if p.Order == plan.OrderCounterbalanced {
		rows = plan.Williams(len(runnable))
	}
	for it := 1; it <= c.Iterations; it++ {
		if co.stopped = co.stop(); co.stopped != nil {
			return nil, co.stopped
		}
		for _, name := range order(p, where, it, runnable, rows) {
			s.Trials = append(s.Trials, runsheet.Trial{
				Index: len(s.Trials), Iteration: it, Treatment: name,
				ChannelSeed: derive(p.Seed, "channel", append(where, number(int64(it)))...),
				Flows:       flows(p, c, s.Network, where, it, name),
				Probes:      probes(p, c, where, it, name),
			})
		}
	}
	// What an agent would refuse must not leave.
	if err := s.Check(); err != nil {
		return nil, err
	}
	return s, nil
}

// checkHorizon refuses a horizon by which the emulated radios cannot have delivered anything.
func checkHorizon(c *plan.Cell, n *radio.Network) error {
	flows := c.Flows
	for _, m := range c.Mixes {
		flows = append(flows[:len(flows):len(flows)], m.Flows...)
	}
	for _, f := range flows {
		size := cmp.Or(f.SizeBytes, c.SizeBytes)
		least := credible.LeastOfBoth(n, &credible.Flow{From: f.From, To: f.To, SizeBytes: size})
		if h := c.Limits.Horizon; h > 0 && f.Duration == 0 && h < least {
			return fmt.Errorf("limits.horizon is %s, and the radio needs at least %s for the payload: nothing can be delivered by then", h, least.Round(time.Millisecond))
		}
	}
	return nil
}

// checkRequired refuses a requirement that something is delivered before the emulated radios
// can have delivered anything.
func checkRequired(c *plan.Cell, n *radio.Network) error {
	for _, q := range c.Require {
		if q.Metric != runsheet.MetricDelivered {
			continue
		}
		for _, f := range c.Flows {
			least := credible.LeastOfBoth(n, &credible.Flow{From: f.From, To: f.To, SizeBytes: cmp.Or(f.SizeBytes, c.SizeBytes)})
			if q.By < least {
				return fmt.Errorf("require[%d].delivered.by is %s, and the radio needs at least %s for the payload: nothing can be delivered by then", q.Entry-1, q.By, least.Round(time.Millisecond))
			}
		}
	}
	return nil
}

// treatments is what the cell needs listeners for and what it misses, in the
// order of the plan, each with the port of its place there.
func treatments(p *plan.Plan, c *plan.Cell) []runsheet.Treatment {
	var out []runsheet.Treatment
	for i, t := range p.Treatments {
		for _, u := range slices.Concat(c.Treatments, c.Listeners) {
			if u.Name != t.Name {
				continue
			}
			u.Options, u.Via = maps.Clone(u.Options), slices.Clone(u.Via)
			for k := range u.Via {
				u.Via[k].Options = maps.Clone(u.Via[k].Options)
			}
			if u.Missing == "" {
				u.Port = runsheet.FirstPort + i
				for k := range u.Via {
					u.Via[k].Port = firstViaPort + viaPorts*i + runsheet.Place(u.Via[k].At) - 1
				}
			}
			out = append(out, u)
		}
	}
	return out
}

// cellParts names a cell by what it is, not by its index: leaving another cell
// out of a plan changes no seed of this one.
func cellParts(c *plan.Cell) []string {
	parts := []string{c.Radio.Name, c.Topology.Name, number(c.SizeBytes)}
	for _, k := range c.Settings {
		parts = append(parts, k.Parameter, k.Value)
	}
	return parts[:len(parts):len(parts)] // appending copies
}

// order is the names of the treatments of one iteration as they run; rows is those
// of a counterbalanced order.
func order(p *plan.Plan, where []string, iteration int, names []string, rows [][]int) []string {
	switch p.Order {
	case plan.OrderRandom:
		// Sorting by a hash of each name is a uniform shuffle that needs no
		// generator whose algorithm could change.
		key := map[string]uint64{}
		for _, n := range names {
			key[n] = derive(p.Seed, "order", append(where, number(int64(iteration)), n)...)
		}
		out := slices.Clone(names)
		slices.SortFunc(out, func(a, b string) int {
			if key[a] != key[b] {
				if key[a] < key[b] {
					return -1
				}
				return 1
			}
			return strings.Compare(a, b)
		})
		return out
	case plan.OrderCounterbalanced:
		if len(rows) == 0 {
			return nil
		}
		row := rows[(iteration-1)%len(rows)]
		out := make([]string, len(row))
		for i, t := range row {
			out[i] = names[t]
		}
		return out
	}
	return names
}
