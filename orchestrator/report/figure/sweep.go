package figure

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"linktrial/orchestrator/plan"
	"linktrial/orchestrator/report"
	"linktrial/orchestrator/report/wording"
)

const (
	chartWidth  = 300.0
	chartHeight = 220.0
	chartLeft   = 66.0
	chartBottom = 48.0
	chartRight  = 24.0
	// chartsAbreast is the bandwidths of decola-2006.
	chartsAbreast = 4
)

// family is charts of one metric and group, which share the scale.
func family(c *report.Chart) string { return c.Group + "\x00" + string(c.Metric) + "\x00" + c.Axis }

// values are all that the y axis must reach.
func values(c *report.Chart) (ys []float64) {
	add := func(x *float64) {
		if x != nil {
			ys = append(ys, *x)
		}
	}
	for _, l := range c.Curves {
		for i := range l.Points {
			p := &l.Points[i]
			if p.Known {
				add(report.Rounded(p.Mean))
				add(report.Rounded(p.Ideal))
				add(report.Rounded(p.CodedBound))
				if r := p.Interval(); r != nil && (r.Low > 0 || p.Mean <= 0) {
					ys = append(ys, r.Low)
				}
				if r := p.Interval(); r != nil {
					ys = append(ys, r.High)
				}
			}
			if f := p.Published; f != nil {
				add(f.Value)
				add(f.AtLeast)
				add(f.AtMost)
				if f.AtLeast != nil && f.AtMost == nil && *f.AtLeast > 0 {
					ys = append(ys, *f.AtLeast*1.1) // room for its bar upwards
				}
			}
		}
	}
	return ys
}

// Curves draws the parameter curves: a line a treatment with its 95 %
// intervals, published values as hollow marks and bounds.
func Curves(v *report.Analysis) ([]byte, error) {
	charts := v.Charts()
	reach := map[string][]float64{}
	for _, c := range charts {
		reach[family(c)] = append(reach[family(c)], values(c)...)
	}
	part := partOf(v, len(charts))
	charts = charts[part.first:part.end]
	looks := curveLooks(v)
	const cell = chartLeft + chartWidth + chartRight
	heads, head := headings(len(charts), fixed(chartWidth), func(i int) (string, string, string) {
		first, second := chartText(charts[i])
		return first, joined(second, v.Dataset.Imported()), "over " + charts[i].Axis
	})
	row := head + headGap + chartHeight + chartBottom
	rows, column := 0, chartsAbreast
	places := make([][2]int, len(charts))
	widest := 1
	for i, c := range charts { // another family begins a new line
		if column == chartsAbreast || i > 0 && family(charts[i-1]) != family(c) {
			rows, column = rows+1, 0
		}
		places[i] = [2]int{rows - 1, column}
		column++
		widest = max(widest, column)
	}
	width := max(minWidth, cell*float64(widest))
	entries := curveLegend(charts, looks)
	top := 36 + float64(rows)*row
	height := top + legendHeightOf(width, entries) + 26
	title := titleOf("Parameter curves", v.Dataset)
	c := &canvas{}
	c.begin(width, height, title)
	for i, ch := range charts {
		x, y := cell*float64(places[i][1]), 30+row*float64(places[i][0])
		heads[i].draw(c, x+chartLeft, y)
		drawChart(ch, c, x, y+head+headGap, scaleFor(reach[family(ch)]), looks)
	}
	c.legend(top+6, width, entries)
	note := "Bars: 95 % intervals of the mean (Student's t). Charts of one metric in a group have the same scale." + part.note()
	if len(charts) == 0 {
		note = report.NothingSwept
	}
	c.text(12, height-8, "start", grey, 11, note)
	c.add("</svg>")
	return []byte(c.b.String()), nil
}

// curveLooks are the looks of treatments and bounds by their names. Bounds are grey, with
// Ideal's circle and the coded bound's diamond, as on pages.
func curveLooks(v *report.Analysis) map[string]look {
	out := map[string]look{}
	for name, number := range v.TreatmentOrder() {
		out[name] = lookOf(number)
	}
	for i, name := range report.Bounds() {
		out[name] = look{colour: grey, marker: boundMarkers[i]}
	}
	return out
}

func curveLegend(charts []*report.Chart, looks map[string]look) (out []legendEntry) {
	seen := map[string]bool{}
	published, ideal, coded := false, false, false
	for _, ch := range charts {
		for _, l := range ch.Curves {
			for i := range l.Points {
				ideal, coded = ideal || !math.IsNaN(l.Points[i].Ideal), coded || !math.IsNaN(l.Points[i].CodedBound)
			}
			published = published || slices.ContainsFunc(l.Points, func(p report.CurvePoint) bool { return p.Published != nil })
			if seen[l.Treatment] {
				continue
			}
			seen[l.Treatment] = true
			out = append(out, treatmentEntry(looks[l.Treatment], l.Label, l.Missing))
		}
	}
	if ideal {
		out = append(out, legendEntry{label: "Ideal in the trials of the point, of its colour", draw: func(c *canvas, x, y float64) { c.limit(x, y, grey, false, "Ideal") }})
	}
	if coded {
		out = append(out, legendEntry{label: "the coded bound there", draw: func(c *canvas, x, y float64) { c.limit(x, y, grey, true, "coded bound") }})
	}
	if published {
		out = append(out, legendEntry{label: "published, of the same colour", draw: func(c *canvas, x, y float64) { c.hollow(x, y, grey, "published") }})
	}
	return out
}

// limit is the mark of what a bound would have reached: a short bar, in two parts for
// the coded bound.
func (c *canvas) limit(x, y float64, colour string, broken bool, hint string) {
	bar := "h14"
	if broken {
		bar = "h5m4 0h5"
	}
	c.add(`<path d="M%s %s%s" stroke="%s" stroke-width="2" fill="none"><title>%s</title></path>`, px(x-7), px(y), bar, colour, escape(hint))
}

// hollow is the mark of a published value.
func (c *canvas) hollow(x, y float64, colour, hint string) {
	c.add(`<circle cx="%s" cy="%s" r="5" fill="none" stroke="%s" stroke-width="1.6"><title>%s</title></circle>`, px(x), px(y), colour, escape(hint))
}

// chartText is a chart's heading.
func chartText(ch *report.Chart) (first, second string) {
	first = report.MetricTitle(ch.Metric)
	if ch.Metric == plan.MetricGain && ch.Reference != "" {
		first += " against " + ch.Reference
	}
	if ch.Group != "" {
		first = ch.Group + ": " + first
	}
	second = report.ConditionText(ch.Fixed)
	if len(ch.Averaged) > 0 {
		second = strings.TrimPrefix(second+"; averaged over "+strings.Join(ch.Averaged, ", "), "; ")
	}
	return first, second
}

// drawChart draws the chart below its heading.
func drawChart(ch *report.Chart, c *canvas, x, top float64, ys axisScale, looks map[string]look) {
	f := &frame{left: x + chartLeft, top: top, width: chartWidth, height: chartHeight, y: ys, x: xScale(ch)}
	f.draw(c, wording.Clip(wording.Clean(ch.Axis), 40), report.MetricTitle(ch.Metric))
	shift := func(k int) float64 { // lines beside each other, so that bars do not overlap
		return 2.4 * (float64(k) - float64(len(ch.Curves)-1)/2)
	}
	for k, l := range ch.Curves {
		look := looks[l.Treatment]
		colour := look.colour
		var points [][2]float64
		for i := range l.Points {
			p := &l.Points[i]
			if !p.Known {
				points = append(points, [2]float64{math.NaN(), math.NaN()})
				continue
			}
			cx := f.px(ch.Stations[i].At) + shift(k)
			points = append(points, [2]float64{cx, f.py(p.Mean)})
			if r := p.Interval(); r != nil {
				lo, hi := f.py(r.Low), f.py(r.High)
				c.add(`<path d="M%s %sV%sm-3 0h6M%s %sh6" stroke="%s" stroke-width="1.2" fill="none"/>`, px(cx), px(lo), px(hi), px(cx-3), px(lo), colour)
			}
		}
		drawLimits(c, f, ch, &l, colour, func(i int) float64 { return f.px(ch.Stations[i].At) + shift(k) })
		c.path(points, colour, 1.4, look.dash)
		for i := range l.Points {
			if p := &l.Points[i]; p.Known {
				c.marker(look.marker, points[i][0], points[i][1], colour, fmt.Sprintf("%s, %s %s: %s, n = %d", l.Label, ch.Axis, ch.Stations[i].Label, p.Text(), p.N))
			}
		}
		for i := range l.Points {
			if p := l.Points[i].Published; p != nil {
				drawPublished(c, f, f.px(ch.Stations[i].At)+shift(k), p, colour, l.Label)
			}
		}
	}
}

// drawLimits draws what the bounds would have reached in the trials of each point.
func drawLimits(c *canvas, f *frame, ch *report.Chart, l *report.Curve, colour string, at func(int) float64) {
	for i := range l.Points {
		p := &l.Points[i]
		for _, b := range []struct {
			name   string
			y      float64
			broken bool
		}{{"Ideal", p.Ideal, false}, {"coded bound", p.CodedBound, true}} {
			if !math.IsNaN(b.y) {
				c.limit(at(i), f.py(b.y), colour, b.broken, fmt.Sprintf("%s in the trials of %s, %s %s: %s", b.name, l.Label, ch.Axis, ch.Stations[i].Label, wording.Short(report.Rounded(b.y))))
			}
		}
	}
}

func drawPublished(c *canvas, f *frame, x float64, p *plan.PublishedValue, colour, label string) {
	hint := fmt.Sprintf("published: %s: %s (%s)", label, report.PublishedText(p), p.Source)
	if p.Value != nil {
		c.hollow(x, f.py(*p.Value), colour, hint)
		return
	}
	lo, hi := f.top+f.height, f.top
	if p.AtLeast != nil {
		lo = f.py(*p.AtLeast)
		c.hollow(x, lo, colour, hint)
	}
	if p.AtMost != nil {
		hi = f.py(*p.AtMost)
		c.hollow(x, hi, colour, hint)
	}
	c.add(`<path d="M%s %sV%s" stroke="%s" stroke-width="5" stroke-opacity="0.2"><title>%s</title></path>`, px(x), px(lo), px(hi), colour, escape(hint))
}

// xScale shows every value by its label: in proportion, by powers of ten where
// they span decades, or side by side where they are no numbers.
func xScale(ch *report.Chart) axisScale {
	s := axisScale{low: math.Inf(1), high: math.Inf(-1)}
	least := math.Inf(1)
	for _, x := range ch.Stations {
		s.low, s.high, least = min(s.low, x.At), max(s.high, x.At), min(least, x.At)
		s.marks = append(s.marks, mark{x.At, wording.Clip(wording.Clean(x.Label), 16)})
	}
	// Parameters are few and chosen: less than two decades of them look better so, too.
	if s.log = ch.Numeric && least > 0 && s.high >= 20*least; s.log {
		margin := math.Pow(s.high/s.low, 0.06)
		s.low, s.high = s.low/margin, s.high*margin
		return s
	}
	margin := cmp.Or((s.high-s.low)*0.06, 1)
	s.low, s.high = s.low-margin, s.high+margin
	return s
}
