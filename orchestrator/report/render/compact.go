package render

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"linktrial/orchestrator/plan"
	"linktrial/orchestrator/report"
	"linktrial/orchestrator/report/wording"
)

// mostTables is how many runs a terminal shows with a table each; beyond, each
// run and treatment has one line.
const mostTables = 12

// compactGroup is runs of one group, radio and topology.
type compactGroup struct {
	heading string
	runs    []*report.RunTable
	axes    [][]plan.Condition // of each run
}

// writeCompact is the table of a campaign of many runs.
func writeCompact(b *strings.Builder, v *report.Analysis) {
	var groups []*compactGroup
	byHeading := map[string]*compactGroup{}
	for i := range v.Tables {
		t := &v.Tables[i]
		h := compactHeading(t)
		g := byHeading[h]
		if g == nil {
			g = &compactGroup{heading: h}
			byHeading[h], groups = g, append(groups, g)
		}
		g.runs, g.axes = append(g.runs, t), append(g.axes, v.Dataset.Runs[i].Axes())
	}
	rate := v.RateUnit()
	for i, g := range groups {
		if i > 0 {
			b.WriteString("\n")
		}
		g.write(b, rate)
	}
	b.WriteString("\n")
	published := len(v.Dataset.PublishedValues) > 0 || slices.ContainsFunc(v.Tables, func(t report.RunTable) bool { return t.Has(report.HasPublished) })
	legend := rate.Name + " (" + rate.Meaning() + "): average ± half of the 95 % interval (Student's t). ×: ratio to the first treatment by iteration (Hodges–Lehmann); * is p < 0.05 (Wilcoxon signed-rank of the same ratios, Holm-corrected)."
	if slices.ContainsFunc(v.Tables, func(t report.RunTable) bool { return t.Has(report.HasIdeal) }) {
		legend += idealLegend
	}
	if slices.ContainsFunc(v.Tables, func(t report.RunTable) bool { return t.Has(report.HasCodedBound) }) {
		legend += codedLegend
	}
	paragraph(b, legend)
	if published {
		paragraph(b, "The formats against and sweep hold these beside the published values.")
	}
	compactRequirements(b, v)
}

func compactHeading(t *report.RunTable) string {
	parts := []string{cmp.Or(t.RadioTitle, "unknown radio") + " at " + cmp.Or(t.TopologyTitle, "unknown topology"), wording.Plural(t.Iterations, "iteration", "iterations")}
	if rule := t.RuleText(); rule != "" {
		parts = append(parts, rule)
	}
	if t.Group != "" {
		parts = append([]string{t.Group}, parts...)
	}
	if s := t.PlaceText(); s != "" {
		parts = append(parts, s)
	}
	return wording.Clean(strings.Join(parts, " · "))
}

// varying are the axes in which the group's runs differ; without any, their size.
func (g *compactGroup) varying() []string {
	names, values := []string{}, map[string]string{}
	differ := map[string]bool{}
	for _, axes := range g.axes {
		for _, c := range axes {
			v, known := values[c.Axis]
			if !known {
				values[c.Axis], names = c.Value, append(names, c.Axis)
			}
			differ[c.Axis] = differ[c.Axis] || known && v != c.Value
		}
	}
	names = slices.DeleteFunc(names, func(n string) bool { return !differ[n] })
	if len(names) == 0 {
		return []string{"size"}
	}
	return names
}

const compactWidth = 22 // of an axis's value and of a treatment

func (g *compactGroup) write(b *strings.Builder, rate wording.RateUnit) {
	paragraph(b, g.heading)
	axes := g.varying()
	header := append(slices.Clone(axes), "treatment", "valid", "average", "±", "SD", "Ideal")
	coded := slices.ContainsFunc(g.runs, func(t *report.RunTable) bool { return t.Has(report.HasCodedBound) })
	if coded {
		header = append(header, "coded")
	}
	header = append(header, "×")
	rows, missing := g.rows(axes, coded, rate)
	writeAligned(b, header, rows, len(axes)+1)
	for _, s := range missing {
		paragraph(b, s)
	}
	g.writeLeads(b, axes)
}

// writeLeads says of each run which treatment leads, and first in how many one does.
func (g *compactGroup) writeLeads(b *strings.Builder, axes []string) {
	var lines []string
	var leads []report.Lead
	for k, t := range g.runs {
		if t.Lead.Text == "" {
			continue
		}
		var place []string
		for _, a := range axes {
			place = append(place, a+" "+report.ValueOf(g.axes[k], a))
		}
		lines = append(lines, wording.Clean(strings.Join(place, ", "))+": "+t.Lead.Text)
		leads = append(leads, t.Lead)
	}
	if len(lines) == 0 {
		return
	}
	b.WriteString("\n")
	paragraph(b, report.LeadsText(leads))
	for _, l := range lines {
		paragraph(b, l)
	}
}

// rows has one for each treatment of each run: the run's values on the axes, the
// metrics, and a note on the run, both only in its first row. Treatments that
// are missing are listed apart, each once.
func (g *compactGroup) rows(axes []string, coded bool, rate wording.RateUnit) (rows [][]string, missing []string) {
	for k, t := range g.runs {
		place := make([]string, len(axes))
		for i, a := range axes {
			place[i] = wording.ClipMiddle(wording.Clean(report.ValueOf(g.axes[k], a)), compactWidth)
		}
		note := ""
		if t.Partial {
			note = cmp.Or(wording.Clean(t.State), "unknown state")
		}
		for i := range t.Rows {
			r := &t.Rows[i]
			if r.Missing != "" {
				if s := "missing: " + wording.Clean(r.Label) + ": " + wording.Clean(r.Missing); !slices.Contains(missing, s) {
					missing = append(missing, s)
				}
				continue
			}
			rows = append(rows, append(append(slices.Clone(place), compactValues(r, coded, rate)...), note))
			clear(place)
			note = ""
		}
		if len(t.Rows) == 0 {
			rows = append(rows, append(place, cmp.Or(note, "no trials")))
		}
	}
	return rows, missing
}

// compactValues are a treatment's name and values.
func compactValues(r *report.Row, coded bool, rate wording.RateUnit) []string {
	half := wording.None
	if r.MeanCI != nil && r.AverageKBps != nil {
		h := r.MeanCI.High - *r.AverageKBps // the lower half may be cut off at 0
		half = rate.Write(&h)
	}
	ratio := ""
	if c := r.Comparison; c != nil {
		ratio = wording.Number(c.Ratio)
		if c.PHolm != nil && *c.PHolm < 0.05 {
			ratio += "*"
		}
	}
	cells := []string{wording.ClipMiddle(wording.Clean(r.Label), compactWidth), r.ValidOf(), rate.Write(r.AverageKBps), half, rate.Write(r.SDKBps), wording.Percent(r.ShareOfIdeal, 1)}
	if coded {
		cells = append(cells, wording.Percent(r.ShareOfCodedBound, 1))
	}
	return append(cells, ratio)
}

// writeAligned writes columns as wide as their widest cell: the first ones, of
// words, and the note behind the header's last are flush left, numbers flush right.
func writeAligned(b *strings.Builder, header []string, rows [][]string, words int) {
	width := make([]int, len(header)+1)
	all := append([][]string{header}, rows...)
	for _, cells := range all {
		for i, c := range cells {
			width[i] = max(width[i], utf8.RuneCountInString(c))
		}
	}
	for _, cells := range all {
		s := ""
		for i, c := range cells {
			if i > 0 {
				s += gap
			}
			if i < words || i == len(header) {
				s += wording.PadRight(c, width[i])
			} else {
				s += wording.PadLeft(c, width[i])
			}
		}
		b.WriteString(wording.Clip(strings.TrimRight(s, " "), tableWidth) + "\n")
	}
}
