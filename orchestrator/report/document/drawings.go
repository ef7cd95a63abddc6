package document

import (
	"fmt"
	"slices"
	"strings"

	"linktrial/orchestrator/report"
	"linktrial/orchestrator/report/figure"
	"linktrial/orchestrator/report/wording"
)

// mostDrawings is how many drawings of one kind a report has.
const mostDrawings = 12

// drawings are all parts of one figure.
type drawings struct {
	caption string
	format  string // of `linktrial results`, which has all parts
	panels  int    // of all parts together; 0: there is nothing to draw
	parts   int
	draw    func(*report.Analysis) ([]byte, error)
	panel   func(int) string // what can be seen in a panel
}

// blocks are the figures, and a sentence on those that are left out.
func (d *drawings) blocks(v *report.Analysis) (out []Block, err error) {
	if d.panels == 0 {
		return nil, nil
	}
	for number := 1; number <= min(d.parts, mostDrawings); number++ {
		svg, err := d.draw(v.WithPart(number))
		if err != nil {
			return nil, fmt.Errorf("figure %s, part %d: %w", d.format, number, err)
		}
		caption := d.caption
		if d.parts > 1 {
			caption += fmt.Sprintf(" Part %d of %d.", number, d.parts)
		}
		first, end := figure.Panels(number, d.panels)
		var alt []string
		for i := first; i < end; i++ {
			alt = append(alt, d.panel(i))
		}
		out = append(out, figureBlock(&Figure{Caption: caption, Alt: strings.Join(alt, " "), SVG: svg}))
	}
	if _, shown := figure.Panels(mostDrawings, d.panels); shown < d.panels {
		out = append(out, paragraph(fmt.Sprintf("%s of this figure are left out. To draw all: linktrial results %s --format %s --out FOLDER",
			wording.Plural(d.panels-shown, "panel", "panels"), wording.Clean(strings.ReplaceAll(v.Dataset.Campaign, ", ", " ")), d.format)))
	}
	return out, nil
}

// ofRuns are drawings with a panel a run; none where no row has a value.
func ofRuns(v *report.Analysis, value func(*report.Row) *float64, say func(*report.RunTable) string) drawings {
	d := drawings{parts: figure.RunParts(v), panel: func(i int) string { return v.Tables[i].Where() + ": " + say(&v.Tables[i]) }}
	if slices.ContainsFunc(v.Tables, func(t report.RunTable) bool {
		return t.Has(func(r *report.Row) bool { return value(r) != nil })
	}) {
		d.panels = len(v.Tables)
	}
	return d
}

func throughputDrawings(v *report.Analysis) *drawings {
	rate := v.RateUnit()
	average := func(r *report.Row) *float64 { return r.AverageKBps }
	d := ofRuns(v, average, func(t *report.RunTable) string {
		return extremes(t, average, "the average is highest of", "lowest of", func(x *float64) string { return rate.Write(x) + " " + rate.Name }, "no valid trials")
	})
	d.caption, d.format, d.draw = "Throughput by treatment: a bar from minimum to maximum, a box of the mean ± one standard deviation, and a mark for each trial.", "svg", figure.Throughput
	return &d
}

func distributionDrawings(v *report.Analysis) *drawings {
	rate := v.RateUnit()
	median := func(r *report.Row) *float64 { return r.MedianKBps }
	d := ofRuns(v, median, func(t *report.RunTable) string {
		return extremes(t, median, "the median is highest of", "lowest of", func(x *float64) string { return rate.Write(x) + " " + rate.Name }, "no valid trials")
	})
	d.caption, d.format, d.draw = "Distribution of throughput: the share of valid trials with at most the throughput on the x axis.", "cdf-svg", figure.Distribution
	return &d
}

func deliveryDrawings(v *report.Analysis) *drawings {
	mean := func(r *report.Row) *float64 {
		if r.Delivery == nil {
			return nil
		}
		return r.Delivery.MeanSeconds
	}
	d := ofRuns(v, mean, func(t *report.RunTable) string {
		return extremes(t, mean, "the mean time to delivery is longest of", "shortest of", func(x *float64) string { return wording.Number(x) + " s" }, "no trial tells of its protocol")
	})
	d.caption, d.format, d.draw = "Delivered over time: the share of valid and failed trials whose payload was there by the time on the x axis.", "delivery-svg", figure.Delivery
	return &d
}

// extremes say of which treatments of a run a value is highest and lowest.
func extremes(t *report.RunTable, value func(*report.Row) *float64, most, least string, write func(*float64) string, none string) string {
	var high, low *report.Row
	for i := range t.Rows {
		r := &t.Rows[i]
		x := value(r)
		switch {
		case x == nil:
			continue
		case high == nil:
			high, low = r, r
		case *x > *value(high):
			high = r
		case *x < *value(low):
			low = r
		}
	}
	if high == nil {
		return none + "."
	}
	say := func(r *report.Row) string { return wording.Clean(r.Label) + " (" + write(value(r)) + ")" }
	if high == low {
		return most + " " + say(high) + "."
	}
	return most + " " + say(high) + ", " + least + " " + say(low) + "."
}

func delayDrawings(v *report.Analysis) *drawings {
	panels := figure.DelayPanels(v)
	d := &drawings{caption: "One-way delay of probes: the share of the packets that arrived within the delay on the x axis, alone and beside each treatment.",
		format: "delays-svg", panels: len(panels), parts: figure.DelayParts(v), draw: figure.Delays}
	d.panel = func(i int) string {
		var said []string
		for k := range panels[i].Rows {
			r := &panels[i].Rows[k]
			if r.DelayP50MS != nil {
				said = append(said, fmt.Sprintf("%s: half of the packets within %s ms, 99 %% within %s ms", r.Name(), wording.Delay(r.DelayP50MS), wording.Delay(r.DelayP99MS)))
			}
		}
		if len(said) == 0 {
			said = []string{"no distribution was measured"}
		}
		return panels[i].Table.Where() + ": " + strings.Join(said, "; ") + "."
	}
	return d
}

// curveDrawings are of sweeps; runs that differ in radio or topology alone are side by side
// in the other figures.
func curveDrawings(v *report.Analysis) *drawings {
	d := &drawings{caption: "Parameter curves: a metric over a swept parameter, a line a treatment, with 95 % intervals of the mean (Student's t).",
		format: "sweep-svg", draw: figure.Curves}
	charts := v.Charts()
	swept := func(c *report.Chart) bool {
		return len(c.Stations) > 1 && !slices.Contains([]string{"radio", "topology", report.CampaignAxis}, c.Axis)
	}
	if !slices.ContainsFunc(charts, swept) {
		return d
	}
	d.panels, d.parts = len(charts), figure.CurveParts(v)
	d.panel = func(i int) string { return curveText(charts[i]) }
	return d
}

// curveText says which treatment is highest at both ends of a chart.
func curveText(c *report.Chart) string {
	var said []string
	for _, k := range slices.Compact([]int{0, len(c.Stations) - 1}) {
		var high *report.Curve
		for i := range c.Curves {
			l := &c.Curves[i]
			if k >= 0 && k < len(l.Points) && l.Points[k].Known && (high == nil || l.Points[k].Mean > high.Points[k].Mean) {
				high = l
			}
		}
		if high != nil {
			said = append(said, fmt.Sprintf("at %s %s is highest (%s)", wording.Clean(c.Stations[k].Label), wording.Clean(high.Label), wording.Short(report.Rounded(high.Points[k].Mean))))
		}
	}
	if len(said) == 0 {
		return c.Heading() + ": no value."
	}
	return c.Heading() + ": " + strings.Join(said, ", ") + "."
}
