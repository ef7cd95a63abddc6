package sheet

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
	"linktrial/orchestrator/plan"
)

// FirstPort is the port of the plan's first treatment; the others follow in
// plan order. A missing treatment keeps its place, so that the others' ports
// do not change when its driver comes to exist.
const FirstPort = 5001

// Compile makes one sheet of every cell, in the order of the plan.
func Compile(p *plan.Plan) ([]*runsheet.Sheet, error) {
	sheets := make([]*runsheet.Sheet, 0, len(p.Cells))
	for i := range p.Cells {
		c := &p.Cells[i]
		s, err := compileCell(p, i, c)
		if err != nil {
			return nil, fmt.Errorf("plan %s, run %d (%s at %s): %w", p.Name, i+1, c.Radio.Name, c.Topology.Name, err)
		}
		sheets = append(sheets, s)
	}
	return sheets, nil
}

func compileCell(p *plan.Plan, index int, c *plan.Cell) (*runsheet.Sheet, error) {
	s := &runsheet.Sheet{
		Format: runsheet.Format, Plan: p.Name, PlanHash: p.Hash,
		Cell:    c.Sheet(index),
		Control: p.Control, Order: string(p.Order),
		Radio: *c.Radio, Topology: *c.Topology,
		Limits: c.Limits, SampleInterval: c.SampleInterval, Seed: p.Seed, Capture: p.Capture,
	}
	if c.Radio.Emulation != nil {
		n, err := radio.Resolve(c.Radio, c.Topology)
		if err != nil {
			return nil, err
		}
		s.Network = n
	}
	s.Treatments = treatments(p, c)
	for _, m := range c.Mixes {
		s.Mixes = append(s.Mixes, runsheet.Mix{Name: m.Name, Label: m.Label, Missing: m.Missing})
	}
	where := cellParts(c)
	runnable := c.Runnable()
	for it := 1; it <= c.Iterations; it++ {
		for _, name := range order(p, where, it, runnable) {
			s.Trials = append(s.Trials, runsheet.Trial{
				Index: len(s.Trials), Iteration: it, Treatment: name,
				ChannelSeed: derive(p.Seed, "channel", append(where, number(int64(it)))...),
				Flows:       flows(p, c, s.Network, where, it, name),
			})
		}
	}
	// An agent will decode what is encoded here; what it would refuse must not leave.
	b, err := s.Encode()
	if err != nil {
		return nil, err
	}
	if _, err := runsheet.Decode(b); err != nil {
		return nil, err
	}
	return s, nil
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
			u.Options = maps.Clone(u.Options)
			if u.Missing == "" {
				u.Port = FirstPort + i
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

// order is the names of the treatments of one iteration as they run.
func order(p *plan.Plan, where []string, iteration int, names []string) []string {
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
		rows := plan.Williams(len(names))
		row := rows[(iteration-1)%len(rows)]
		out := make([]string, len(row))
		for i, t := range row {
			out[i] = names[t]
		}
		return out
	}
	return names
}
