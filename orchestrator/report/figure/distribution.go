package figure

import (
	"fmt"
	"slices"

	"linktrial/internal/unit"
	"linktrial/orchestrator/report"
	"linktrial/orchestrator/report/wording"
)

// distributed is one run's distributions.
type distributed struct {
	table *report.RunTable
	rates [][]float64 // of each row's valid trials, KB/s, ascending
}

// Distribution draws the empirical distribution of throughput: for each run and
// treatment the share of the valid trials that reached no more than so much.
// Charts of one radio have the same scale.
func Distribution(a *report.Analysis) ([]byte, error) {
	part := partOf(a, len(a.Tables))
	runs := make([]distributed, len(a.Tables))
	tops, largest := map[string]float64{}, 0.0
	for i := range runs {
		runs[i] = distributed{table: &a.Tables[i], rates: ratesOf(&a.Tables[i], &a.Dataset.Runs[i])}
		for _, xs := range runs[i].rates {
			if n := len(xs); n > 0 {
				tops[runs[i].table.Radio] = max(tops[runs[i].table.Radio], xs[n-1])
				largest = max(largest, xs[n-1])
			}
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
	entries := distributionLegend(a.Tables, order)
	top := 36 + row*float64((len(runs)+abreast-1)/abreast)
	height := top + legendHeightOf(width, entries) + 26
	title := titleOf("Distribution of throughput", a.Dataset)
	c := &canvas{}
	c.begin(width, height, title)
	for i := range runs {
		x, y := cell*float64(i%abreast), 30+row*float64(i/abreast)
		heads[i].draw(c, x+chartLeft, y)
		runs[i].draw(c, x, y+head+headGap, tops[runs[i].table.Radio], order)
	}
	c.legend(top+6, width, entries)
	c.text(12, height-8, "start", grey, 11, "Of valid trials; "+wording.RateUnitFor(largest).Meaning()+". Charts of one radio have the same scale."+part.note())
	c.add("</svg>")
	return []byte(c.b.String()), nil
}

func ratesOf(t *report.RunTable, r *report.Run) [][]float64 {
	out := make([][]float64, len(t.Rows))
	for i := range r.Trials {
		trial := &r.Trials[i]
		k := slices.IndexFunc(t.Rows, func(r report.Row) bool { return r.Treatment == trial.Treatment })
		if a := trial.Counted(); a != nil && k >= 0 {
			out[k] = append(out[k], a.ThroughputBytesPerSecond()/unit.KB)
		}
	}
	for _, xs := range out {
		slices.Sort(xs)
	}
	return out
}

func distributionLegend(tables []report.RunTable, order map[string]int) (out []legendEntry) {
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

// draw draws the chart below its heading.
func (d *distributed) draw(c *canvas, x, top, highest float64, order map[string]int) {
	t, rate := d.table, wording.RateUnitFor(highest)
	f := &frame{left: x + chartLeft, top: top, width: chartWidth, height: chartHeight, x: linear(0, rate.In(highest)), y: linear(0, 1)}
	f.draw(c, "Throughput ("+rate.Name+")", "share of trials")
	shown := false
	for k, xs := range d.rates {
		if len(xs) == 0 {
			continue
		}
		shown = true
		r := &t.Rows[k]
		look := lookOf(order[r.Treatment])
		points := [][2]float64{{f.px(rate.In(xs[0])), f.py(0)}}
		for i, x := range xs {
			at := f.px(rate.In(x))
			points = append(points, [2]float64{at, f.py(float64(i) / float64(len(xs)))}, [2]float64{at, f.py(float64(i+1) / float64(len(xs)))})
		}
		points = append(points, [2]float64{f.left + f.width, f.py(1)})
		c.path(points, look.colour, 1.4, look.dash)
		// So many marks that they can still be distinguished.
		every := max(1, len(xs)/40)
		for i := 0; i < len(xs); i += every {
			c.marker(look.marker, f.px(rate.In(xs[i])), f.py(float64(i+1)/float64(len(xs))), look.colour, fmt.Sprintf("%s: %d of %d trials at most %s %s", wording.Clean(r.Label), i+1, len(xs), rate.Write(&xs[i]), rate.Name))
		}
	}
	if !shown {
		c.text(f.left+f.width/2, f.top+f.height/2, "middle", grey, 11, "no valid trials")
	}
}
