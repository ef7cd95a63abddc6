package plan

import (
	"slices"

	"linktrial/executor/runsheet"
)

// MarkUnavailable marks treatments as missing that nodes cannot run: for each
// cell, by name, the reason. Mixes that need one of them are missing too; a treatment
// is missing from the whole plan where it is so in every cell that has it. It
// returns every treatment and reason once, in the order of the plan, for
// people. A cell of which fewer than two treatments are left has no rule to stop by.
func (p *Plan) MarkUnavailable(cells []map[string]string) []string {
	var why []string
	for i := range p.Cells {
		if i >= len(cells) || len(cells[i]) == 0 {
			continue
		}
		c := &p.Cells[i]
		// Cells of a group share these lists.
		c.Treatments = markUnavailable(c.Treatments, cells[i])
		c.Listeners = markUnavailable(c.Listeners, cells[i])
		c.Mixes = slices.Clone(c.Mixes)
		for k := range c.Mixes {
			m := &c.Mixes[k]
			for _, t := range slices.Concat(c.Treatments, c.Listeners) {
				if m.Missing == "" && t.Missing != "" && m.uses(t.Name) {
					m.Missing = t.Label + " is missing: " + t.Missing
				}
			}
		}
		if c.Stop != nil && c.compared() < leastCompared {
			c.Stop = nil
			if text := "the rule to stop by: of a run, fewer than two treatments are left to compare"; !slices.Contains(why, text) {
				why = append(why, text)
			}
		}
		for _, t := range p.Treatments {
			if reason := cells[i][t.Name]; reason != "" {
				if text := "treatment " + t.Name + ": " + reason; !slices.Contains(why, text) {
					why = append(why, text)
				}
			}
		}
	}
	for i := range p.Treatments {
		if t := &p.Treatments[i]; t.Missing == "" {
			t.Missing = p.everywhere(func(c *Cell) (string, bool) {
				return missingOf(slices.Concat(c.Treatments, c.Listeners), t.Name)
			})
		}
	}
	for i := range p.Mixes {
		if m := &p.Mixes[i]; m.Missing == "" {
			m.Missing = p.everywhere(func(c *Cell) (string, bool) {
				k := slices.IndexFunc(c.Mixes, func(x Mix) bool { return x.Name == m.Name })
				if k < 0 {
					return "", false
				}
				return c.Mixes[k].Missing, true
			})
		}
	}
	return why
}

func markUnavailable(list []runsheet.Treatment, reasons map[string]string) []runsheet.Treatment {
	list = slices.Clone(list)
	for i := range list {
		if t := &list[i]; t.Missing == "" {
			t.Missing = reasons[t.Name]
		}
	}
	return list
}

func missingOf(list []runsheet.Treatment, name string) (string, bool) {
	i := slices.IndexFunc(list, func(t runsheet.Treatment) bool { return t.Name == name })
	if i < 0 {
		return "", false
	}
	return list[i].Missing, true
}

// everywhere is the reason where all cells that have something miss it.
func (p *Plan) everywhere(of func(*Cell) (reason string, has bool)) string {
	first := ""
	for i := range p.Cells {
		reason, has := of(&p.Cells[i])
		switch {
		case !has:
		case reason == "":
			return ""
		case first == "":
			first = reason
		}
	}
	return first
}

// uses reports whether a mix has flows of a treatment.
func (m *Mix) uses(treatment string) bool {
	return slices.ContainsFunc(m.Flows, func(f FlowSpec) bool { return f.Treatment == treatment })
}
