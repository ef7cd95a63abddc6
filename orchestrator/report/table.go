package report

import (
	"cmp"
	"strconv"
	"strings"
	"unicode/utf8"
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
	width[0] = max(min(width[0], tableWidth-total), 12)
	names := g.names(width[0])
	line := func(name string, r gridRow) {
		s := padRight(name, width[0])
		for i, c := range r.cells[1:] {
			s += gap + padLeft(c, width[i+1])
		}
		if r.text != "" {
			s += gap + r.text
		}
		b.WriteString(clip(strings.TrimRight(s, " "), tableWidth) + "\n")
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
		names[i] = clipMiddle(full, width)
		if other, taken := seen[names[i]]; taken && other != full {
			alike = true
		}
		seen[names[i]] = full
	}
	if alike {
		for i, r := range g.rows {
			names[i] = clipMiddle(strconv.Itoa(i+1)+" "+r.cells[0], width)
		}
	}
	return names
}

// paragraph writes text in lines of the table's width, further ones indented.
func paragraph(b *strings.Builder, text string) {
	line := ""
	for _, word := range strings.Fields(text) {
		word = clip(word, tableWidth-2)
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

func renderTable(v *view) ([]byte, error) {
	var b strings.Builder
	if len(v.tables) > mostTables {
		writeCompact(&b, v)
	} else {
		writeTables(&b, v)
	}
	if len(v.tables) == 0 {
		b.WriteString("no runs\n")
	}
	writeNotes(&b, v)
	return []byte(b.String()), nil
}

func writeTables(b *strings.Builder, v *view) {
	for i := range v.tables {
		if i > 0 {
			b.WriteString("\n")
		}
		t := &v.tables[i]
		writeRunTable(b, t)
		// What the columns mean is said once for runs that need the same words.
		if i == len(v.tables)-1 || v.tables[i+1].legend() != t.legend() {
			b.WriteString("\n")
			paragraph(b, t.legend())
		}
	}
}

func writeRunTable(b *strings.Builder, t *RunTable) {
	paragraph(b, t.heading())
	if s := t.partial(); s != "" {
		paragraph(b, s)
	}
	b.WriteString("\n")
	ideal, vs := t.has(hasIdeal), t.has(compared)
	g := grid{header: []string{"KB/s", "valid", "average", "max", "min", "SD", "median", "95 % CI"}}
	if ideal {
		g.header = append(g.header, "of Ideal")
	}
	if vs {
		g.header = append(g.header, "ratio", "p")
	}
	for i := range t.Rows {
		r := &t.Rows[i]
		if r.Missing != "" {
			g.rows = append(g.rows, gridRow{cells: []string{clean(r.Label)}, text: "missing: " + clean(r.Missing)})
			continue
		}
		cells := []string{clean(r.Label), r.valid(), kbps(r.AverageKBps), kbps(r.MaxKBps), kbps(r.MinKBps), kbps(r.SDKBps), kbps(r.MedianKBps), span(r.MeanCI, kbps)}
		if ideal {
			cells = append(cells, percent(r.ShareOfIdeal, 1))
		}
		if vs {
			cells = append(cells, comparisonCells(t, r)...)
		}
		g.rows = append(g.rows, gridRow{cells: cells})
	}
	g.write(b)
	var notes []string
	for i := range t.Rows {
		r := &t.Rows[i]
		if s := r.troubles(); s != "" {
			notes = append(notes, clean(r.Label)+": "+s)
		} else if !fits(clean(r.Missing)) { // cut above
			notes = append(notes, clean(r.Label)+": missing: "+clean(r.Missing))
		}
	}
	if len(notes) > 0 {
		b.WriteString("\n")
	}
	for _, n := range notes {
		paragraph(b, n)
	}
	if t.has(isPublished) {
		b.WriteString("\n")
		writePublished(b, t)
	}
}

// comparisonCells are ratio and p of a row; the reference is 1 by definition.
func comparisonCells(t *RunTable, r *Row) []string {
	switch {
	case r.Treatment == t.Reference:
		return []string{"1", ""}
	case r.Comparison == nil:
		return []string{none, none}
	}
	return []string{kbps(r.Comparison.Ratio), pValue(r.Comparison.PHolm)}
}

func (t *RunTable) legend() string {
	s := "1 KB is 1024 bytes; CI: of the average, Student's t."
	if t.has(hasIdeal) {
		s += " Ideal: an all-knowing sender on the same channel realisations."
	}
	if t.has(compared) {
		s += " ratio and p: against " + t.referenceLabel() + " by iteration; geometric mean; Wilcoxon signed-rank, Holm-corrected."
	}
	return s
}

func writePublished(b *strings.Builder, t *RunTable) {
	source := ""
	g := grid{header: []string{"beside published", "average", "publ.", "off by", "max", "publ.", "min", "publ.", "SD", "publ."}}
	for i := range t.Rows {
		r := &t.Rows[i]
		p := r.Published
		if p == nil {
			continue
		}
		g.rows = append(g.rows, gridRow{cells: []string{
			clean(r.Label), kbps(r.AverageKBps), kbps(&p.AvgKBps), deviation(p.AvgDeviation),
			kbps(r.MaxKBps), kbps(&p.MaxKBps), kbps(r.MinKBps), kbps(&p.MinKBps), kbps(r.SDKBps), kbps(&p.SDKBps),
		}})
		name := clean(cmp.Or(p.Source, "source not stated"))
		if !strings.Contains(source+"; ", name+"; ") {
			source += name + "; "
		}
	}
	g.write(b)
	paragraph(b, "published: "+strings.TrimSuffix(source, "; "))
}
