package figure

import (
	"cmp"
	"fmt"
	"slices"

	"linktrial/orchestrator/report"
	"linktrial/orchestrator/report/wording"
)

// probePanel is the probes of one kind in one run: alone, and beside each treatment.
type probePanel struct {
	table *report.RunTable
	rows  []report.ProbeRow
}

// alone is the place of what ran beside nothing in the order of treatments.
const alone = ""

// marked are the percentiles that a curve of delays has marks at.
var marked = []int{50, 95, 99}

// Delays draws the empirical distribution of probes' one-way delays: for each run
// and probe, the share of the packets that arrived within so much, alone and beside
// each treatment, with the uncertainty of the clocks at the marks. Charts of one
// radio have the same scale.
func Delays(a *report.Analysis) ([]byte, error) {
	all := probePanels(a.Tables)
	part := partOf(a, len(all))
	panels := all[part.first:part.end]
	values := map[string][]float64{}
	for _, p := range all {
		for i := range p.rows {
			values[p.family()] = append(values[p.family()], p.rows[i].PercentilesMS...)
		}
	}
	const cell = chartLeft + chartWidth + chartRight
	heads, head := headings(len(panels), fixed(chartWidth), func(i int) (string, string, string) {
		p := &panels[i]
		return p.title(), partial(p.table) + joined(radioAt(p.table), p.table.Group, p.table.Settings, p.table.PlaceText()), "run " + p.table.Run
	})
	row := head + underLine + headGap + chartHeight + chartBottom
	order := a.TreatmentOrder()
	abreast := max(1, min(panelsAbreast, len(panels)))
	width := max(minWidth, cell*float64(abreast))
	entries := delaysLegend(all, order)
	top := 36 + row*float64((len(panels)+abreast-1)/abreast)
	caveats := caveatsOf(panels)
	height := top + legendHeightOf(width, entries) + 42 + 16*float64(len(caveats))
	c := &canvas{}
	c.begin(width, height, titleOf("One-way delay of probes", a.Dataset))
	for i, p := range panels {
		x, y := cell*float64(i%abreast), 30+row*float64(i/abreast)
		heads[i].draw(c, x+chartLeft, y)
		c.text(x+chartLeft, y+heads[i].height()+underLine, "start", grey, 11, wording.Clip(wording.Clean(p.certainty()), 58))
		p.draw(c, x, y+head+underLine+headGap, scaleFor(values[p.family()]), order)
	}
	c.legend(top+6, width, entries)
	for i, s := range caveats {
		c.text(12, height-24-16*float64(len(caveats)-i), "start", ink, 11, wording.Clip(s, int(width/5.6)))
	}
	c.text(12, height-24, "start", grey, 11, "Of the packets that arrived. Marks: 50th, 95th and 99th percentile; bars at them: what the clocks are uncertain by."+part.note())
	c.text(12, height-8, "start", grey, 11, "Charts of one radio and kind of delay have the same scale. Probes are compared with no transfer.")
	c.add("</svg>")
	return []byte(c.b.String()), nil
}

// caveatsOf are what the curves leave out, each once.
func caveatsOf(panels []probePanel) (out []string) {
	for i := range panels {
		t := panels[i].table
		for k := range panels[i].rows {
			r := &panels[i].rows[k]
			for _, s := range r.Caveats() {
				s = r.Name() + " (" + wording.Clean(radioAt(t)) + "): " + s
				if !slices.Contains(out, s) {
					out = append(out, s)
				}
			}
		}
	}
	return out
}

// family is charts that have the same scale: delays above the shortest are others.
func (p *probePanel) family() string {
	return fmt.Sprintf("%s\x00%t", p.table.Radio, p.uncompared())
}

// uncompared: delays are those above the shortest one of each probe.
func (p *probePanel) uncompared() bool {
	return p.table.ProbeClock == nil || p.table.ProbeClock.Unknown != ""
}

// probePanels are the charts, in the order of the tables.
func probePanels(tables []report.RunTable) (out []probePanel) {
	for i := range tables {
		t := &tables[i]
		for _, rows := range t.ProbeGroups() {
			// The delays of a search are mostly those of rates that it only tried.
			if rows[0].Capacity == nil {
				out = append(out, probePanel{t, rows})
			}
		}
	}
	return out
}

func delaysLegend(panels []probePanel, order map[string]int) (out []legendEntry) {
	seen := map[string]bool{}
	for _, p := range panels {
		for i := range p.rows {
			r := &p.rows[i]
			if seen[r.Beside] || len(r.PercentilesMS) == 0 {
				continue
			}
			seen[r.Beside] = true
			if r.Beside == alone {
				out = append(out, aloneEntry)
				continue
			}
			out = append(out, treatmentEntry(lookOf(order[r.Beside]), "beside "+r.BesideLabel, ""))
		}
	}
	return out
}

// aloneEntry is the row without load: no treatment's colour, and a wider line.
var aloneEntry = legendEntry{label: "alone", draw: func(c *canvas, x, y float64) { c.line(x-6, y, x+6, y, grey, 2.6) }}

// title names the probe, and which way its packets go.
func (p *probePanel) title() string {
	title := cmp.Or(p.rows[0].Label, p.rows[0].Probe)
	if p.rows[0].From != "" && p.rows[0].To != "" {
		title += ", from " + string(p.rows[0].From) + " to " + string(p.rows[0].To)
	}
	return title
}

// draw draws the chart below its heading.
func (p *probePanel) draw(c *canvas, x, top float64, scale axisScale, order map[string]int) {
	f := &frame{left: x + chartLeft, top: top, width: chartWidth, height: chartHeight, x: scale, y: linear(0, 1)}
	name := "One-way delay (ms)"
	if p.uncompared() {
		name = "Delay above the shortest (ms)"
	}
	f.draw(c, name, "share of packets")
	shown := false
	for i := range p.rows {
		shown = p.curve(c, f, &p.rows[i], order) || shown
	}
	if !shown {
		c.text(f.left+f.width/2, f.top+f.height/2, "middle", grey, 11, "no distribution was measured")
	}
}

// certainty says in a few words how certain the delays are.
func (p *probePanel) certainty() string {
	worst, driver := 0.0, false
	for i := range p.rows {
		if u := p.rows[i].UncertaintyMS; u != nil {
			worst = max(worst, *u)
		}
		driver = driver || p.rows[i].ProcessTimes
	}
	said := "the clocks were compared: ± " + wording.Delay(&worst) + " ms"
	switch k := p.table.ProbeClock; {
	case p.uncompared():
		said = "the clocks were not compared"
	case k.Shared && worst == 0:
		said = "both ends have one clock"
	case k.Shared:
		said = "both ends have one clock, which stepped: ± " + wording.Delay(&worst) + " ms"
	}
	if driver {
		said += "; arrivals as the driver got them"
	}
	return said
}

// curve draws one row; false: it has no distribution.
func (p *probePanel) curve(c *canvas, f *frame, r *report.ProbeRow, order map[string]int) bool {
	if len(r.PercentilesMS) == 0 {
		return false
	}
	last := len(r.PercentilesMS) - 1
	share := func(k int) float64 { return f.py(float64(k) / float64(last)) }
	points := [][2]float64{{f.px(r.PercentilesMS[0]), share(0)}}
	for k := 1; k <= last; k++ {
		at := f.px(r.PercentilesMS[k])
		points = append(points, [2]float64{at, share(k - 1)}, [2]float64{at, share(k)})
	}
	points = append(points, [2]float64{f.left + f.width, share(last)})
	look, width := look{colour: grey, marker: markers[0]}, 2.6
	if r.Beside != alone {
		look, width = lookOf(order[r.Beside]), 1.4
	}
	c.path(points, look.colour, width, look.dash)
	what := "alone"
	if r.Beside != alone {
		what = "beside " + wording.Clean(r.BesideLabel)
	}
	for _, k := range marked {
		ms := r.PercentilesMS[k]
		y := share(k)
		hint := fmt.Sprintf("%s: %d %% of the packets within %s ms", what, k, wording.Delay(&ms))
		if u := r.UncertaintyMS; u != nil && *u > 0 {
			from, to := f.px(ms-*u), f.px(ms+*u)
			c.line(from, y, to, y, look.colour, 1)
			c.line(from, y-3, from, y+3, look.colour, 1)
			c.line(to, y-3, to, y+3, look.colour, 1)
			hint += " ± " + wording.Delay(u) + " ms"
		}
		for _, s := range r.Caveats() {
			hint += "; " + s
		}
		if r.LossShare != nil {
			hint += fmt.Sprintf("; %s of those sent were lost", wording.Percent(r.LossShare, 2))
		}
		c.marker(look.marker, f.px(ms), y, look.colour, hint)
	}
	return true
}
