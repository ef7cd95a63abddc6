package figure

import (
	"slices"

	"linktrial/orchestrator/report"
)

// stepFigure is a figure with a chart a run and a line a treatment, which rises with each
// trial from 0 to the share of all.
type stepFigure struct {
	title string
	share string // the name of the y axis
	none  string // what is in a chart without lines
	// of is the lines of a run by its rows, from the least value. A row without a line is nil;
	// one without steps stays at 0.
	of func(*report.RunTable, *report.Run) [][]step
	// unit is the name of the x axis and its unit, of a chart that reaches up to highest.
	unit func(highest float64) (name string, in func(float64) float64)
	// hint is of a step of a row.
	hint func(r *report.Row, s step, highest float64) string
	// fromZero: lines begin at 0, not at their first value.
	fromZero bool
	// reach is how far charts of a radio go that has no steps; nil: nowhere.
	reach func(*report.RunTable) float64
	note  func(largest float64) string
	bands string // what they are; empty: steps have none
}

// step is where a line rises to a share.
type step struct {
	at     float64
	trials int // up to here
	of     int
	ci     *report.Range // of the share; nil: none is drawn
}

func (s step) share() float64 { return float64(s.trials) / float64(s.of) }

// stepped is one run's lines.
type stepped struct {
	table *report.RunTable
	rows  [][]step
}

// draw draws a part of the figure. Charts of one radio have the same scale.
func (g *stepFigure) draw(a *report.Analysis) ([]byte, error) {
	part := partOf(a, len(a.Tables))
	runs := make([]stepped, len(a.Tables))
	tops, largest := map[string]float64{}, 0.0
	for i := range runs {
		t := &a.Tables[i]
		runs[i] = stepped{table: t, rows: g.of(t, &a.Dataset.Runs[i])}
		for _, steps := range runs[i].rows {
			if n := len(steps); n > 0 {
				tops[t.Radio] = max(tops[t.Radio], steps[n-1].at)
				largest = max(largest, steps[n-1].at)
			}
		}
	}
	for i := range runs {
		if t := runs[i].table; tops[t.Radio] == 0 && g.reach != nil {
			tops[t.Radio] = g.reach(t)
		}
	}
	runs = runs[part.first:part.end]
	const cell = chartLeft + chartWidth + chartRight
	heads, head := headings(len(runs), fixed(chartWidth), func(i int) (string, string, string) {
		t := runs[i].table
		return radioAt(t), conditions(t), "run " + t.Run
	})
	row := head + headGap + chartHeight + chartBottom
	order := a.TreatmentOrder()
	abreast := max(1, min(panelsAbreast, len(runs)))
	width := max(minWidth, cell*float64(abreast))
	entries := stepLegend(a.Tables, order)
	top := 36 + row*float64((len(runs)+abreast-1)/abreast)
	height := top + legendHeightOf(width, entries) + 42
	c := &canvas{}
	c.begin(width, height, titleOf(g.title, a.Dataset))
	for i := range runs {
		x, y := cell*float64(i%abreast), 30+row*float64(i/abreast)
		heads[i].draw(c, x+chartLeft, y)
		g.chart(c, runs[i], x, y+head+headGap, tops[runs[i].table.Radio], order)
	}
	c.legend(top+6, width, entries)
	note := g.note(largest)
	if slices.ContainsFunc(runs, stepped.banded) {
		note += g.bands
	}
	c.text(12, height-24, "start", grey, 11, note)
	c.text(12, height-8, "start", grey, 11, "Charts of one radio have the same scale."+part.note())
	c.add("</svg>")
	return []byte(c.b.String()), nil
}

func stepLegend(tables []report.RunTable, order map[string]int) (out []legendEntry) {
	seen := map[string]bool{}
	for i := range tables {
		for _, r := range tables[i].Rows {
			if seen[r.Treatment] {
				continue
			}
			seen[r.Treatment] = true
			out = append(out, treatmentEntry(lookOf(order[r.Treatment]), r.Label, r.Missing))
		}
	}
	return out
}

// mostBands is the most lines of a chart of which intervals can be told apart.
const mostBands = 3

// banded reports whether the run's lines are few enough to have their intervals drawn.
func (s stepped) banded() bool {
	lines, some := 0, false
	for _, steps := range s.rows {
		some = some || slices.ContainsFunc(steps, func(s step) bool { return s.ci != nil })
		if steps != nil {
			lines++
		}
	}
	return some && lines <= mostBands
}

// chart draws a run's chart below its heading.
func (g *stepFigure) chart(c *canvas, s stepped, x, top, highest float64, order map[string]int) {
	name, in := g.unit(highest)
	f := &frame{left: x + chartLeft, top: top, width: chartWidth, height: chartHeight, x: linear(0, in(highest)), y: linear(0, 1)}
	f.draw(c, name, g.share)
	at := func(s step) float64 { return f.px(in(s.at)) }
	banded, empty := s.banded(), true
	for k, steps := range s.rows {
		if steps == nil {
			continue
		}
		empty = empty && len(steps) == 0
		r := &s.table.Rows[k]
		look := lookOf(order[r.Treatment])
		if banded {
			f.bands(c, steps, at, look.colour)
		}
		c.path(g.line(f, steps, at), look.colour, 1.4, look.dash)
		// So many marks that they can still be distinguished.
		every := max(1, len(steps)/40)
		for i := 0; i < len(steps); i += every {
			c.marker(look.marker, at(steps[i]), f.py(steps[i].share()), look.colour, g.hint(r, steps[i], highest))
		}
	}
	if empty {
		c.text(f.left+f.width/2, f.top+f.height/2, "middle", grey, 11, g.none)
	}
}

// line is the points of a row's line.
func (g *stepFigure) line(f *frame, steps []step, at func(step) float64) (points [][2]float64) {
	y := f.py(0)
	if g.fromZero {
		points = append(points, [2]float64{f.px(0), y})
	}
	for _, s := range steps {
		points = append(points, [2]float64{at(s), y})
		y = f.py(s.share())
		points = append(points, [2]float64{at(s), y})
	}
	return append(points, [2]float64{f.left + f.width, y})
}

// bands draws the intervals of shares, from each step to the next.
func (f *frame) bands(c *canvas, steps []step, at func(step) float64, colour string) {
	for i, s := range steps {
		if s.ci == nil {
			continue
		}
		right := f.left + f.width
		if i+1 < len(steps) {
			right = at(steps[i+1])
		}
		y := f.py(s.ci.High)
		c.add(`<rect x="%s" y="%s" width="%s" height="%s" fill="%s" fill-opacity="0.12"/>`, px(at(s)), px(y), px(right-at(s)), px(f.py(s.ci.Low)-y), colour)
	}
}
