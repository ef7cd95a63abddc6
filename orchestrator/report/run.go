package report

import (
	"slices"
	"strings"

	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/orchestrator/plan"
)

// CampaignAxis is the axis in which the runs of several campaigns differ when
// they are compared in one dataset.
const CampaignAxis = "campaign"

// Unnamed reports whether nobody has named the radio that the run used: the sheet's is
// what the plan says, and its parameters are not those of the radio.
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

// LabelOf is how tables name a treatment of the run.
func (r *Run) LabelOf(treatment string) string {
	if r.Sheet == nil {
		return treatment
	}
	return r.Sheet.Label(treatment)
}

func (r *Run) isMix(name string) bool {
	return r.Sheet != nil && slices.ContainsFunc(r.Sheet.Mixes, func(m runsheet.Mix) bool { return m.Name == name })
}

// imports are those of the runs, each once.
func (ds *Dataset) imports() (out []*Import) {
	for i := range ds.Runs {
		x := ds.Runs[i].Imported
		if x != nil && !slices.ContainsFunc(out, func(y *Import) bool { return y.Campaign == x.Campaign }) {
			out = append(out, x)
		}
	}
	return out
}

// ImportedCampaigns are the identities of those that other orchestrators measured.
func (ds *Dataset) ImportedCampaigns() (out []string) {
	for _, x := range ds.imports() {
		out = append(out, x.Campaign)
	}
	return out
}

// Imported says in a few words which campaigns were imported; empty: none.
func (ds *Dataset) Imported() string {
	var out []string
	for _, x := range ds.imports() {
		out = append(out, "campaign "+x.Campaign+" "+x.Text())
	}
	return strings.Join(out, "; ")
}
