package report

import (
	"slices"

	"linktrial/orchestrator/plan"
)

// grouped is the runs of one group of the plan, or some of them.
type grouped struct {
	name string
	runs []*summarised
}

// groups are the plan's groups in the order of their runs; one without a name
// where the plan has none.
func (v *Analysis) groups() []*grouped {
	var all grouped
	for i := range v.runs {
		all.runs = append(all.runs, &v.runs[i])
	}
	out, _ := all.split(func(s *summarised) string { return s.table.Group })
	for _, g := range out {
		g.name = g.runs[0].table.Group
	}
	return out
}

// split parts the runs by a key; the parts are in the order of their first runs.
func (g *grouped) split(key func(*summarised) string) (out []*grouped, by map[string]*grouped) {
	by = map[string]*grouped{}
	for _, s := range g.runs {
		k := key(s)
		if by[k] == nil {
			by[k] = &grouped{name: g.name}
			out = append(out, by[k])
		}
		by[k].runs = append(by[k].runs, s)
	}
	return out, by
}

// named is the group without the runs whose radio nobody has named.
func (g *grouped) named() *grouped {
	return &grouped{g.name, slices.DeleteFunc(slices.Clone(g.runs), func(s *summarised) bool { return s.run.Unnamed() })}
}

// values are an axis's values among the runs that meet the conditions, in the
// order of the plan.
func (g *grouped) values(axis string, where []plan.Condition) (out []string) {
	for _, s := range g.runs {
		if v := ValueOf(s.axes, axis); v != "" && meets(s.axes, where) && !slices.Contains(out, v) {
			out = append(out, v)
		}
	}
	return out
}

// treatments are the names and labels of all rows of the runs that meet the conditions.
func (g *grouped) treatments(where []plan.Condition) (names []string, labels map[string]string) {
	labels = map[string]string{}
	for _, b := range bounds {
		labels[b.name] = b.label
	}
	for _, s := range g.runs {
		if !meets(s.axes, where) {
			continue
		}
		for _, r := range s.table.Rows {
			if !slices.Contains(names, r.Treatment) {
				names = append(names, r.Treatment)
				labels[r.Treatment] = r.Label
			}
		}
		if s.run.Sheet == nil {
			continue
		}
		for _, t := range s.run.Sheet.Treatments { // also those that only flows of mixes use
			if labels[t.Name] == "" {
				labels[t.Name] = s.run.Sheet.Label(t.Name)
			}
		}
	}
	return names, labels
}

// mean is a metric over all runs that meet the conditions, each run counting
// alike; where there is none, why. runs is how many have a value, of is of
// how many.
func (g *grouped) mean(m plan.Metric, treatment, reference string, where []plan.Condition) (e Estimate, runs, of int, why string) {
	var es []Estimate
	for _, s := range g.runs {
		if !meets(s.axes, where) {
			continue
		}
		of++
		x, reason := s.estimate(m, treatment, reference)
		if reason != "" {
			if why == "" || why == notPart {
				why = reason
			}
			continue
		}
		es = append(es, x)
	}
	if len(es) == 0 {
		if of == 0 {
			why = "no run of these conditions"
		}
		return noEstimate, 0, of, why
	}
	if len(es) == 1 {
		return es[0], 1, of, ""
	}
	return together(es), len(es), of, ""
}

// limits are the bounds beside [grouped.mean], over the same runs.
func (g *grouped) limits(m plan.Metric, treatment, reference string) Limits {
	sum, n := Limits{}, 0
	for _, s := range g.runs {
		if _, why := s.estimate(m, treatment, reference); why != "" {
			continue
		}
		l := s.limits(m, treatment, reference)
		sum.Ideal, sum.CodedBound, n = sum.Ideal+l.Ideal, sum.CodedBound+l.CodedBound, n+1
	}
	return sum.scaled(1 / float64(n))
}
