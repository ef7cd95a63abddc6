package report

import (
	"slices"
	"strings"

	"linktrial/executor/journal"
	"linktrial/orchestrator/plan"
	"linktrial/orchestrator/report/wording"
)

// Unnamed reports whether nobody has named the radio that the run used: the sheet's is
// what the plan says, and its figures are not those of the radio.
func (r *Run) Unnamed() bool { return r.Place == journal.PlaceUnnamed }

// Unnamed is the number of runs whose radio nobody has named.
func (ds *Dataset) Unnamed() (n int) {
	for i := range ds.Runs {
		if ds.Runs[i].Unnamed() {
			n++
		}
	}
	return n
}

// radioCalled is the radio of the plan as results may call it.
func (r *Run) radioCalled(planned string) string {
	if r.Unnamed() {
		return journal.PlaceUnnamed + ", planned as " + planned
	}
	return planned
}

// Axes is the run's value of every axis of its plan: radio, topology, size,
// then those of the sweep.
func (r *Run) Axes() []plan.Condition {
	if r.Sheet == nil {
		return nil
	}
	c := &r.Sheet.Cell
	out := []plan.Condition{{Axis: "radio", Value: r.radioCalled(c.Radio)}, {Axis: "topology", Value: c.Topology}, {Axis: "size", Value: c.At("size")}}
	for _, s := range c.Settings {
		if out[len(out)-1].Axis != s.Axis { // the parameters of one axis share its label
			out = append(out, plan.Condition{Axis: s.Axis, Value: s.Label})
		}
	}
	return out
}

// meets reports whether the run has all these values.
func meets(axes, where []plan.Condition) bool {
	return !slices.ContainsFunc(where, func(c plan.Condition) bool { return !slices.Contains(axes, c) })
}

// ValueOf is the value of an axis, empty where the run is not on it.
func ValueOf(axes []plan.Condition, axis string) string {
	if i := slices.IndexFunc(axes, func(c plan.Condition) bool { return c.Axis == axis }); i >= 0 {
		return axes[i].Value
	}
	return ""
}

// ConditionText names conditions for people: "bandwidth 1 Mbit/s, size 1 MB".
func ConditionText(cs []plan.Condition) string {
	parts := make([]string, len(cs))
	for i, c := range cs {
		parts[i] = c.Axis + " " + c.Value
	}
	return strings.Join(parts, ", ")
}

// metricNames are what tables and axes call a metric.
var metricNames = map[plan.Metric]struct{ short, long string }{
	plan.MetricNormalised:   {"normalised", "normalised throughput"},
	plan.MetricGain:         {"gain %", "gain (%)"},
	plan.MetricKBps:         {"KB/s", "throughput (KB/s)"},
	plan.MetricKbitps:       {"kbit/s", "throughput (kbit/s)"},
	plan.MetricMbitps:       {"Mbit/s", "throughput (Mbit/s)"},
	plan.MetricFlowMbitps:   {"Mbit/s a flow", "throughput of a flow (Mbit/s)"},
	plan.MetricTimeouts:     {"timeouts", "timeouts"},
	plan.MetricCompleted:    {"completed", "share of trials completed"},
	MetricShareOfIdeal:      {"of Ideal", "share of Ideal"},
	MetricShareOfCodedBound: {"of coded", "share of the coded bound"},
}

func shortName(m plan.Metric) string {
	if n, ok := metricNames[m]; ok {
		return n.short
	}
	return wording.Clean(string(m))
}

// grouped is the runs of one group of the plan, with the axes' values of each.
type grouped struct {
	name string
	runs []*summarised
	axes [][]plan.Condition // of each run
}

// groups are the plan's groups in the order of their runs; one without a name
// where the plan has none.
func (v *Analysis) groups() []*grouped {
	var out []*grouped
	byName := map[string]*grouped{}
	for i := range v.runs {
		s := &v.runs[i]
		g := byName[s.table.Group]
		if g == nil {
			g = &grouped{name: s.table.Group}
			byName[g.name], out = g, append(out, g)
		}
		g.runs, g.axes = append(g.runs, s), append(g.axes, s.run.Axes())
	}
	return out
}

// named is the group without the runs whose radio nobody has named.
func (g *grouped) named() *grouped {
	out := &grouped{name: g.name}
	for i, s := range g.runs {
		if !s.run.Unnamed() {
			out.runs, out.axes = append(out.runs, s), append(out.axes, g.axes[i])
		}
	}
	return out
}

// values are an axis's values among the runs that meet the conditions, in the
// order of the plan.
func (g *grouped) values(axis string, where []plan.Condition) (out []string) {
	for _, axes := range g.axes {
		if v := ValueOf(axes, axis); v != "" && meets(axes, where) && !slices.Contains(out, v) {
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
	for i, s := range g.runs {
		if !meets(g.axes[i], where) {
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
// alike; where there is none, why. runs is how many have a figure, of is of
// how many.
func (g *grouped) mean(m plan.Metric, treatment, reference string, where []plan.Condition) (e Estimate, runs, of int, why string) {
	var es []Estimate
	for i, s := range g.runs {
		if !meets(g.axes[i], where) {
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

const notPart = "not part of the run"
