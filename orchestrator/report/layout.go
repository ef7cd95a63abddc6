package report

import (
	"cmp"
	"slices"
	"strings"
)

// TopologyTables are the runs of one topology, side by side as in Table 2 of breedy-2015.
type TopologyTables struct {
	Title    string
	SameSize bool // all of them have the size of the first
	Tables   []*RunTable
}

// ByTopology are the topologies in the order of the plan, each with its runs.
func ByTopology(tables []RunTable) (groups []TopologyTables) {
	var names []string
	for i := range tables {
		t := &tables[i]
		g := slices.Index(names, t.Topology)
		if g < 0 {
			g = len(names)
			names, groups = append(names, t.Topology), append(groups, TopologyTables{})
		}
		groups[g].Tables = append(groups[g].Tables, t)
	}
	for i := range groups {
		g := &groups[i]
		first := g.Tables[0]
		g.SameSize = !slices.ContainsFunc(g.Tables, func(t *RunTable) bool { return t.SizeBytes != first.SizeBytes })
		g.Title = cmp.Or(first.TopologyTitle, "unknown topology")
	}
	return groups
}

// ColumnParts are what a run's column is called under its topology: the parts of the radio's
// title, the size unless that is empty, and the settings.
func (t *RunTable) ColumnParts(size string) (parts []string) {
	parts = strings.Split(cmp.Or(t.RadioTitle, "unknown radio"), ", ")
	if size != "" {
		parts = append(parts, size)
	}
	return append(parts, strings.Split(t.Settings, ", ")...)
}

// TreatmentsOf lists the treatments of all these runs in the order they appear.
func TreatmentsOf(tables []*RunTable) (names, labels []string) {
	for _, t := range tables {
		for i := range t.Rows {
			if r := &t.Rows[i]; !slices.Contains(names, r.Treatment) {
				names, labels = append(names, r.Treatment), append(labels, r.Label)
			}
		}
	}
	return names, labels
}

// RowOf is a treatment's row; nil: the run has none.
func (t *RunTable) RowOf(treatment string) *Row {
	if i := slices.IndexFunc(t.Rows, func(r Row) bool { return r.Treatment == treatment }); i >= 0 {
		return &t.Rows[i]
	}
	return nil
}

// DeliveryRowLegend says what the line of deliveries is in the layout of Table 2.
const DeliveryRowLegend = "Delivery: mean time from the first attempt to connect until the payload was there, restricted to the horizon; over valid and failed trials, of which one that failed counts as the horizon. Throughput is of the valid trials alone."
