package render

import (
	"cmp"
	"strconv"
	"strings"
	"unicode/utf8"

	"linktrial/orchestrator/report"
	"linktrial/orchestrator/report/wording"
)

// tableWidth is how many columns a terminal table takes at most.
const tableWidth = 110

// grid is a table of text whose columns are as wide as their widest cell; the
// first is left-aligned and gives way where the table would get too wide.
type grid struct {
	header []string
	rows   []gridRow
}

type gridRow struct {
	cells []string
	text  string // instead of all cells but the first
}

const gap = "  "

func (g *grid) write(b *strings.Builder) {
	width := make([]int, len(g.header))
	for i, h := range g.header {
		width[i] = utf8.RuneCountInString(h)
	}
	for _, r := range g.rows {
		for i, c := range r.cells {
			width[i] = max(width[i], utf8.RuneCountInString(c))
		}
	}
	total := 0
	for _, w := range width[1:] {
		total += len(gap) + w
	}
	width[0] = min(width[0], max(tableWidth-total, 12))
	names := g.names(width[0])
	line := func(name string, r gridRow) {
		s := wording.PadRight(name, width[0])
		for i, c := range r.cells[1:] {
			s += gap + wording.PadLeft(c, width[i+1])
		}
		if r.text != "" {
			s += gap + r.text
		}
		b.WriteString(wording.Clip(strings.TrimRight(s, " "), tableWidth) + "\n")
	}
	line(g.header[0], gridRow{cells: g.header})
	for i, r := range g.rows {
		line(names[i], r)
	}
}

// names fits the first column's cells into a width. Long ones lose their middle,
// as their ends tell them apart; where that leaves two alike, rows are numbered.
func (g *grid) names(width int) []string {
	names, seen, alike := make([]string, len(g.rows)), map[string]string{}, false
	for i, r := range g.rows {
		full := r.cells[0]
		names[i] = wording.ClipMiddle(full, width)
		if other, taken := seen[names[i]]; taken && other != full {
			alike = true
		}
		seen[names[i]] = full
	}
	if alike {
		for i, r := range g.rows {
			names[i] = wording.ClipMiddle(strconv.Itoa(i+1)+" "+r.cells[0], width)
		}
	}
	return names
}

// paragraph writes text in lines of the table's width, further ones indented.
func paragraph(b *strings.Builder, text string) {
	line := ""
	for _, word := range strings.Fields(text) {
		word = wording.Clip(word, tableWidth-2)
		if line != "" && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > tableWidth {
			b.WriteString(line + "\n")
			line = " "
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	if line != "" {
		b.WriteString(line + "\n")
	}
}

var tableFormat = &Format{Name: "table", Title: "Plain text", File: "results.txt", MediaType: plain, OnScreen: true,
	Holds: "for a terminal, at most 110 characters wide: a table for each run with a row for each treatment; with more than twelve runs, one line for each run and treatment",
	write: inMemory(renderTable)}

func renderTable(v *report.Analysis) ([]byte, error) {
	var b strings.Builder
	if len(v.Tables) > mostTables {
		writeCompact(&b, v)
	} else {
		writeTables(&b, v)
	}
	if len(v.Tables) == 0 {
		b.WriteString("no runs\n")
	}
	writeOverRuns(&b, v)
	writeBreaches(&b, v)
	writeNotes(&b, v)
	return []byte(b.String()), nil
}

func writeTables(b *strings.Builder, v *report.Analysis) {
	rate := v.RateUnit()
	for i := range v.Tables {
		if i > 0 {
			b.WriteString("\n")
		}
		t := &v.Tables[i]
		writeRunTable(b, t, rate)
		// What the columns mean is said once for runs that need the same words.
		if len(t.Rows) > 0 && (i == len(v.Tables)-1 || legendOf(&v.Tables[i+1], rate) != legendOf(t, rate)) {
			b.WriteString("\n")
			paragraph(b, legendOf(t, rate))
		}
	}
}

func writeRunTable(b *strings.Builder, t *report.RunTable, rate wording.RateUnit) {
	paragraph(b, t.Heading())
	if s := t.PartialNote(); s != "" {
		paragraph(b, s)
	}
	b.WriteString("\n")
	ideal, coded, vs := t.Has(report.HasIdeal), t.Has(report.HasCodedBound), t.Has(report.HasComparison)
	if len(t.Rows) == 0 && len(t.Probes) > 0 { // nothing but probes
		writeProbes(b, t)
		writeRequirements(b, t)
		return
	}
	g := grid{header: []string{rate.Name, "valid", "average", "max", "min", "SD", "median", "95 % CI"}}
	if ideal {
		g.header = append(g.header, "Ideal")
	}
	if coded {
		g.header = append(g.header, "coded")
	}
	if vs {
		g.header = append(g.header, "ratio", "p")
	}
	for i := range t.Rows {
		r := &t.Rows[i]
		if r.Missing != "" {
			g.rows = append(g.rows, gridRow{cells: []string{wording.Clean(r.Label)}, text: "missing: " + wording.Clean(r.Missing)})
			continue
		}
		cells := []string{wording.Clean(r.Label), r.ValidOf(), rate.Write(r.AverageKBps), rate.Write(r.MaxKBps), rate.Write(r.MinKBps), rate.Write(r.SDKBps), rate.Write(r.MedianKBps), narrowSpan(r.MeanCI, rate)}
		if ideal {
			cells = append(cells, wording.Percent(r.ShareOfIdeal, 1))
		}
		if coded {
			cells = append(cells, wording.Percent(r.ShareOfCodedBound, 1))
		}
		if vs {
			cells = append(cells, comparisonCells(t, r)...)
		}
		g.rows = append(g.rows, gridRow{cells: cells})
	}
	g.write(b)
	if t.Has(report.HasDelivery) {
		b.WriteString("\n")
		writeDelivery(b, t, rate)
	}
	if t.Conclusion != "" {
		b.WriteString("\n")
		paragraph(b, t.Conclusion)
	}
	for _, note := range t.Notes {
		paragraph(b, note)
	}
	var notes []string
	for i := range t.Rows {
		r := &t.Rows[i]
		if s := r.Remarks(); s != "" {
			notes = append(notes, wording.Clean(r.Label)+": "+s)
		} else if !fits(wording.Clean(r.Missing)) { // cut above
			notes = append(notes, wording.Clean(r.Label)+": missing: "+wording.Clean(r.Missing))
		}
	}
	if len(notes) > 0 {
		b.WriteString("\n")
	}
	for _, n := range notes {
		paragraph(b, n)
	}
	if t.Has(report.HasPublished) {
		b.WriteString("\n")
		writePublished(b, t, rate)
	}
	if t.BoundsUnknown != "" {
		b.WriteString("\n")
		paragraph(b, t.BoundsUnknown)
	}
	for _, note := range []string{t.ControlNote, t.HostNote} {
		if note != "" {
			b.WriteString("\n")
			paragraph(b, note)
		}
	}
	if len(t.Probes) > 0 {
		b.WriteString("\n")
		writeProbes(b, t)
	}
	writeRequirements(b, t)
}

// comparisonCells are ratio and p of a row; the reference is 1 by definition.
func comparisonCells(t *report.RunTable, r *report.Row) []string {
	switch {
	case r.Treatment == t.Reference:
		return []string{"1", ""}
	case r.Comparison == nil:
		return []string{wording.None, wording.None}
	}
	return []string{wording.Number(r.Comparison.Ratio), wording.PValue(r.Comparison.PHolm)}
}

const (
	idealLegend = " Ideal: share of what an all-knowing sender reaches on the same channel realisations."
	codedLegend = " coded: share of the coded bound, what a sender reaches there who knows the channel's statistics but not its future."
)

func legendOf(t *report.RunTable, rate wording.RateUnit) string {
	s := rate.Meaning() + "; CI: of the average, Student's t, not below 0."
	if t.Has(report.HasIdeal) {
		s += idealLegend
	}
	if t.Has(report.HasCodedBound) {
		s += codedLegend
	}
	if t.Has(report.HasComparison) {
		s += " ratio and p: against " + t.ReferenceLabel() + " by iteration; Hodges–Lehmann; Wilcoxon signed-rank of the same ratios, Holm-corrected."
	}
	if t.Has(report.HasDelivery) {
		s += " " + deliveryLegendOf(t)
	}
	return s
}

func writePublished(b *strings.Builder, t *report.RunTable, rate wording.RateUnit) {
	source := ""
	g := grid{header: []string{"beside published", "average", "publ.", "off by", "max", "publ.", "min", "publ.", "SD", "publ."}}
	for i := range t.Rows {
		r := &t.Rows[i]
		p := r.Published
		if p == nil {
			continue
		}
		g.rows = append(g.rows, gridRow{cells: []string{
			wording.Clean(r.Label), rate.Write(r.AverageKBps), rate.Write(&p.AvgKBps), wording.Deviation(p.AvgDeviation),
			rate.Write(r.MaxKBps), rate.Write(&p.MaxKBps), rate.Write(r.MinKBps), rate.Write(&p.MinKBps), rate.Write(r.SDKBps), rate.Write(&p.SDKBps),
		}})
		name := wording.Clean(cmp.Or(p.Source, "source not stated"))
		if !strings.Contains(source+"; ", name+"; ") {
			source += name + "; "
		}
	}
	g.write(b)
	paragraph(b, "published: "+strings.TrimSuffix(source, "; "))
}

// narrowSpan is a throughput's interval where columns are few.
func narrowSpan(r *report.Range, rate wording.RateUnit) string {
	if r == nil || r.Low < 0 {
		return r.Text(rate.Write)
	}
	return rate.Write(&r.Low) + "–" + rate.Write(&r.High)
}
