package document

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"linktrial/internal/unit"
	"linktrial/orchestrator/report"
	"linktrial/orchestrator/report/wording"
)

// Of a table in the layout of Table 2 of breedy-2015: more are divided among several.
const (
	mostRadios     = 6 // columns of values
	mostTreatments = 12
)

// layoutLine is one line of a treatment's group.
type layoutLine struct {
	name  string
	value func(*report.Row) string
}

// layoutLines are those of all tables: the paper's, and the time to delivery where trials
// failed, because the average leaves these out.
func layoutLines(v *report.Analysis) []layoutLine {
	rate := v.RateUnit()
	line := func(name string, of func(*report.Row) *float64) layoutLine {
		return layoutLine{name, func(r *report.Row) string { return rate.Write(of(r)) }}
	}
	out := []layoutLine{
		line("Average", func(r *report.Row) *float64 { return r.AverageKBps }),
		line("Max", func(r *report.Row) *float64 { return r.MaxKBps }),
		line("Min", func(r *report.Row) *float64 { return r.MinKBps }),
		line("St. dev.", func(r *report.Row) *float64 { return r.SDKBps }),
		{"Valid", (*report.Row).ValidOf},
	}
	if hasFailedDelivery(v) {
		out = append(out, layoutLine{"Delivery, s", func(r *report.Row) string {
			if r.Delivery == nil {
				return wording.None
			}
			return wording.Number(r.Delivery.MeanSeconds)
		}})
	}
	return out
}

func hasFailedDelivery(v *report.Analysis) bool {
	return slices.ContainsFunc(v.Tables, func(t report.RunTable) bool { return t.Has(failedDelivery) })
}

// layoutColumn is a run under its topology.
type layoutColumn struct {
	topology, head string
	table          *report.RunTable
	name           string
}

func (c *layoutColumn) headings() [2]string { return [2]string{c.topology, c.head} }

// layoutColumns are the runs with treatments, by topology. Group and topology are above
// them, and the radio too where runs of one radio differ in their settings. Runs with the
// same headings have their numbers.
func layoutColumns(v *report.Analysis, names []string) (out []layoutColumn) {
	index, count := map[string]int{}, map[[2]string]int{} // of runs, and of headings
	for i := range v.Tables {
		index[v.Tables[i].Run] = i
	}
	oneRadio := !slices.ContainsFunc(v.Tables, func(t report.RunTable) bool { return t.Settings == "" || t.RadioTitle != v.Tables[0].RadioTitle })
	for _, g := range report.ByTopology(v.Tables) {
		for _, t := range g.Tables {
			if !hasRows(t) {
				continue
			}
			size := unit.FormatPayload(t.SizeBytes)
			topology := g.Title
			if g.SameSize {
				topology, size = topology+" ("+size+")", ""
			}
			parts := t.ColumnParts(size)
			above := []string{t.Group, topology}
			if oneRadio {
				parts, above = []string{size, t.Settings}, append(above, t.RadioTitle)
			}
			if t.Partial {
				parts = append(parts, "partial")
			}
			if t.Imported != nil {
				parts = append(parts, "imported "+t.Imported.Campaign)
			}
			out = append(out, layoutColumn{joined(above), joined(parts), t, names[index[t.Run]]})
			count[out[len(out)-1].headings()]++
		}
	}
	for i := range out {
		c := &out[i]
		same := c.headings()
		if count[same] > 1 {
			c.head += fmt.Sprintf(", run %d", index[c.table.Run]+1)
		}
	}
	return out
}

// joined are the words that are not empty.
func joined(words []string) string {
	return wording.Clean(strings.Join(slices.DeleteFunc(words, func(s string) bool { return s == "" }), ", "))
}

// layoutTables lay the throughput out as Table 2 of breedy-2015 does: treatments as groups of
// rows, a column a radio, under topologies.
func layoutTables(v *report.Analysis, names []string) (out []Block) {
	lines := layoutLines(v)
	for columns := range slices.Chunk(layoutColumns(v, names), mostRadios) {
		tables := make([]*report.RunTable, len(columns))
		for i, c := range columns {
			tables[i] = c.table
		}
		treatments, labels := report.TreatmentsOf(tables)
		for from := 0; from < len(treatments); from += mostTreatments {
			to := min(from+mostTreatments, len(treatments))
			out = append(out, tableBlock(layoutTable(columns, treatments[from:to], labels[from:to], lines, v.RateUnit().Name)))
		}
	}
	for i := range out {
		t := out[i].Table
		t.Caption = "Throughput by treatment, topology and radio"
		if len(out) > 1 {
			t.Caption += fmt.Sprintf(", part %d of %d", i+1, len(out))
		}
	}
	if n := len(out); n > 0 {
		last := out[n-1].Table
		last.Notes = append(last.Notes, "St. dev.: of the sample (n − 1). Valid: valid trials of all.")
		if hasFailedDelivery(v) {
			last.Notes = append(last.Notes, report.DeliveryRowLegend)
		}
	}
	return out
}

func layoutTable(columns []layoutColumn, treatments, labels []string, lines []layoutLine, unitName string) *Table {
	t := &Table{Columns: make([]Column, 2, 2+len(columns))}
	topologies, radios := []Head{{Span: 2}}, []Head{{Text: "Treatment"}, {Text: unitName}}
	for i, c := range columns {
		t.Columns = append(t.Columns, Column{Number: true})
		radios = append(radios, Head{Text: c.head})
		if i > 0 && columns[i-1].topology == c.topology {
			topologies[len(topologies)-1].Span++
			continue
		}
		topologies = append(topologies, Head{Text: c.topology, Span: 1})
	}
	t.Heads = [][]Head{topologies, radios}
	for i, treatment := range treatments {
		label := wording.Clean(cmp.Or(labels[i], treatment))
		here := lines
		if !slices.ContainsFunc(columns, func(c layoutColumn) bool { r := c.table.RowOf(treatment); return r != nil && r.Missing == "" }) {
			here = []layoutLine{{}} // one that says so
		}
		for k, line := range here {
			cells := append(make([]string, 0, 2+len(columns)), "", line.name)
			if k == 0 {
				cells[0] = label
			}
			for _, c := range columns {
				cells = append(cells, layoutCell(c.table.RowOf(treatment), line, k))
			}
			t.Rows = append(t.Rows, Row{Cells: cells, Group: k == 0})
		}
		t.note(missingNotes(columns, treatment, label)...)
	}
	for _, c := range columns {
		if s := c.table.PartialNote(); s != "" {
			t.note(wording.Sentence(c.name + ": " + s + "."))
		}
	}
	return t
}

// layoutCell is the value of a line; empty: the run does not have the treatment, or the
// first line says that it is missing.
func layoutCell(r *report.Row, line layoutLine, number int) string {
	switch {
	case r == nil:
		return ""
	case r.Missing == "":
		return line.value(r)
	case number == 0:
		return "missing"
	}
	return ""
}

// missingNotes say why a treatment could not be run.
func missingNotes(columns []layoutColumn, treatment, label string) (out []string) {
	for _, c := range columns {
		if r := c.table.RowOf(treatment); r != nil && r.Missing != "" {
			out = append(out, label+" is missing: "+strings.TrimSuffix(wording.Clean(r.Missing), ".")+".")
		}
	}
	return out
}

// note adds notes that are not there yet.
func (t *Table) note(notes ...string) {
	for _, n := range notes {
		if !slices.Contains(t.Notes, n) {
			t.Notes = append(t.Notes, n)
		}
	}
}
