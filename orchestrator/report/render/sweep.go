package render

import (
	"slices"
	"strings"
	"unicode/utf8"

	"linktrial/orchestrator/report"
	"linktrial/orchestrator/report/wording"
)

var sweepFormat = &Format{Name: "sweep", Title: "Plain text, parameter curves", File: "sweep.txt", MediaType: plain, Of: OfSweeps,
	Holds: "parameter curves: a metric over a swept parameter, a line for each treatment; `--axis` and `--metric` choose others than those of the plan's published values",
	write: inMemory(renderSweep)}

func renderSweep(a *report.Analysis) ([]byte, error) {
	charts := a.Charts()
	var b strings.Builder
	for i, c := range charts {
		if i > 0 {
			b.WriteString("\n")
		}
		writeChart(&b, c)
	}
	if len(charts) == 0 {
		paragraph(&b, report.NothingSwept)
	} else {
		b.WriteString("\n")
		paragraph(&b, "mean ± half of the 95 % interval of the mean (Student's t), or its ends where it ends at 0; published values in brackets. "+
			"Its Ideal, coded bound: what these would have reached in the same trials as the treatment on their left, by the same clock.")
	}
	writeNotes(&b, a)
	return []byte(b.String()), nil
}

// limitColumns are what the bounds would have reached in the trials of each point.
func limitColumns(l *report.Curve) (columns [][]string) {
	for _, b := range []struct {
		name string
		of   func(*report.CurvePoint) float64
	}{
		{"its Ideal", func(p *report.CurvePoint) float64 { return p.Ideal }},
		{"coded bound", func(p *report.CurvePoint) float64 { return p.CodedBound }},
	} {
		column, some := []string{b.name}, false
		for i := range l.Points {
			y := report.Rounded(b.of(&l.Points[i]))
			some = some || y != nil
			column = append(column, wording.Short(y))
		}
		if some {
			columns = append(columns, column)
		}
	}
	return columns
}

func writeChart(b *strings.Builder, c *report.Chart) {
	paragraph(b, c.Heading())
	var columns [][]string // header, then a cell for each station
	for _, l := range c.Curves {
		if l.Missing != "" && !slices.ContainsFunc(l.Points, func(p report.CurvePoint) bool { return p.Published != nil }) {
			continue // named below
		}
		column := []string{wording.Clean(l.Label)}
		for _, p := range l.Points {
			column = append(column, p.Text())
		}
		columns = append(columns, column)
		columns = append(columns, limitColumns(&l)...)
	}
	names := []string{wording.Clean(c.Axis)}
	for _, x := range c.Stations {
		names = append(names, wording.Clean(x.Label))
	}
	width := func(column []string) (w int) {
		for _, s := range column {
			w = max(w, utf8.RuneCountInString(s))
		}
		return w
	}
	for len(columns) > 0 {
		g := grid{header: names[:1]}
		for i := range c.Stations {
			g.rows = append(g.rows, gridRow{cells: names[i+1 : i+2]})
		}
		total, n := max(width(names), 12), 0
		for n < len(columns) && (n == 0 || total+len(gap)+width(columns[n]) <= tableWidth) {
			total += len(gap) + width(columns[n])
			g.header = append(g.header[:n+1:n+1], columns[n][0])
			for i := range g.rows {
				g.rows[i].cells = append(g.rows[i].cells[:n+1:n+1], columns[n][i+1])
			}
			n++
		}
		columns = columns[n:]
		g.write(b)
	}
	for _, l := range c.Curves {
		if l.Missing != "" {
			paragraph(b, wording.Clean(l.Label)+": missing: "+wording.Clean(l.Missing))
		}
	}
}
