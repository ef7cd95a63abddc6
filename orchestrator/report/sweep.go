package report

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"linktrial/internal/unit"
	"linktrial/orchestrator/plan"
	"linktrial/orchestrator/report/wording"
)

// Chart is a metric over one swept axis, a curve a treatment.
type Chart struct {
	Group     string
	Fixed     []plan.Condition // of the other axes; those left out are averaged over
	Averaged  []string
	Axis      string
	Metric    plan.Metric
	Reference string // of gains
	Stations  []Station
	Numeric   bool // stations are on a scale; else they are side by side
	Curves    []Curve
}

// Heading names the chart in one line.
func (c *Chart) Heading() string {
	parts := []string{MetricTitle(c.Metric) + " over " + c.Axis}
	if c.Group != "" {
		parts = append([]string{c.Group}, parts...)
	}
	if len(c.Fixed) > 0 {
		parts = append(parts, ConditionText(c.Fixed))
	}
	if len(c.Averaged) > 0 {
		parts = append(parts, "averaged over "+strings.Join(c.Averaged, ", "))
	}
	return wording.Clean(strings.Join(parts, " · "))
}

// Station is one value of the swept axis.
type Station struct {
	Label string
	At    float64
}

// Curve is one treatment of a [Chart], or a bound.
type Curve struct {
	Treatment, Label string
	Points           []CurvePoint // one for each station
	Missing          string       // why the treatment was not run
}

// CurvePoint is the metric at one station.
type CurvePoint struct {
	Estimate
	Limits    // of the same trials
	Known     bool
	Published *plan.PublishedValue // a value or bounds; nil: none
}

// Charts are the parameter curves of the campaign: for each group and each
// metric that its published values have (KB/s where there are none), over the
// axis that the shapes among these name, else the longest with numbers, one chart
// for each combination of the other axes. Axes that no published value of the
// metric states are averaged over, as the paper did. [Options] may say otherwise.
func (v *Analysis) Charts() []*Chart {
	if o := v.options; o.Axis != "" || o.Metric != "" {
		axes := append(v.SweptAxes(), "")
		return v.ChartsOf(cmp.Or(o.Metric, plan.MetricKBps), cmp.Or(o.Axis, axes[0]))
	}
	var out []*Chart
	for _, g := range v.groups() {
		values, swept := v.valuesOf(g), g.swept()
		var metrics []plan.Metric
		for _, f := range values {
			if !slices.Contains(metrics, f.Metric) && f.Text == "" {
				metrics = append(metrics, f.Metric)
			}
		}
		if len(metrics) == 0 {
			metrics = []plan.Metric{plan.MetricKBps}
		}
		for _, m := range metrics {
			of := slices.DeleteFunc(slices.Clone(values), func(f *plan.PublishedValue) bool { return f.Metric != m || f.Text != "" })
			for _, x := range g.over(swept, of) {
				out = append(out, v.shown(g.panels(m, x, swept, of))...)
			}
		}
	}
	return out
}

// ChartsOf are the curves of one metric over one axis, a chart for each group
// and combination of the other axes, with the published values of that metric
// in its unit. None where the axis is not swept.
func (v *Analysis) ChartsOf(m plan.Metric, axis string) (out []*Chart) {
	for _, g := range v.groups() {
		swept := g.swept()
		if !slices.Contains(swept, axis) {
			continue
		}
		var values []*plan.PublishedValue
		for _, p := range v.valuesOf(g) {
			f := *p // a copy: its unit may change
			if f.Text == "" && inUnit(&f, m) {
				values = append(values, &f)
			}
		}
		out = append(out, v.shown(g.panels(m, axis, swept, values))...)
	}
	return out
}

// shown takes the curves out of charts that are left out.
func (v *Analysis) shown(charts []*Chart) []*Chart {
	for _, c := range charts {
		c.Curves = without(c.Curves, func(l *Curve) bool { return v.leavesOut(l.Treatment) })
	}
	return charts
}

// valuesOf are the plan's published values of a group.
func (v *Analysis) valuesOf(g *grouped) (out []*plan.PublishedValue) {
	for i := range v.Dataset.PublishedValues {
		if f := &v.Dataset.PublishedValues[i]; f.Group == g.name {
			out = append(out, f)
		}
	}
	return out
}

// SweptAxes are the axes in which the runs of any group differ, the one that
// [Analysis.Charts] would draw first of all before the others.
func (v *Analysis) SweptAxes() (out []string) {
	for _, g := range v.groups() {
		swept := g.swept()
		for _, axis := range append(g.over(swept, v.valuesOf(g)), swept...) {
			if !slices.Contains(out, axis) {
				out = append(out, axis)
			}
		}
	}
	return out
}

// swept are the axes with more than one value.
func (g *grouped) swept() (out []string) {
	if len(g.runs) == 0 {
		return nil
	}
	for _, c := range g.runs[0].axes {
		if len(g.values(c.Axis, nil)) > 1 {
			out = append(out, c.Axis)
		}
	}
	return out
}

// over chooses the axes to draw over.
func (g *grouped) over(swept []string, values []*plan.PublishedValue) (out []string) {
	for _, f := range values {
		named := []string{f.Falls, f.Rises}
		for _, c := range append(slices.Clone(f.RelativeTo), conditionOf(f.Best), conditionOf(f.FlatFrom)) {
			named = append(named, c.Axis)
		}
		for _, axis := range named {
			if slices.Contains(swept, axis) && !slices.Contains(out, axis) {
				out = append(out, axis)
			}
		}
	}
	if len(out) > 0 {
		return out
	}
	best, most := "", 0
	for _, axis := range swept {
		n := len(g.values(axis, nil))
		if _, numeric := g.stations(axis); numeric {
			n += 1 << 20 // any axis with numbers before one without
		}
		if n >= most {
			best, most = axis, n
		}
	}
	if best == "" {
		return nil
	}
	return []string{best}
}

func conditionOf(c *plan.Condition) plan.Condition {
	if c == nil {
		return plan.Condition{}
	}
	return *c
}

// stations are an axis's values in the order they are drawn.
func (g *grouped) stations(axis string) (xs []Station, numeric bool) {
	numeric = true
	seen := map[string]bool{}
	for _, s := range g.runs {
		label := ValueOf(s.axes, axis)
		if label == "" || seen[label] {
			continue
		}
		seen[label] = true
		at, ok := axisNumber(s.run, axis, label)
		numeric = numeric && ok
		xs = append(xs, Station{label, at})
	}
	if !numeric {
		for i := range xs {
			xs[i].At = float64(i)
		}
		return xs, false
	}
	slices.SortStableFunc(xs, func(a, b Station) int { return cmp.Compare(a.At, b.At) })
	return xs, true
}

// axisNumber is the place of an axis's value on a scale.
func axisNumber(r *Run, axis, label string) (float64, bool) {
	if axis == "size" {
		return float64(r.Sheet.Cell.SizeBytes), true
	}
	text, parameters := label, 0
	for _, s := range r.Sheet.Cell.Settings {
		if s.Axis == axis {
			text = s.Value
			parameters++
		}
	}
	if parameters != 1 {
		text = label
	}
	return quantity(text)
}

// quantity reads a number with any unit that plans have.
func quantity(s string) (float64, bool) {
	s = strings.TrimSpace(s)
	if p, ok := strings.CutSuffix(s, "%"); ok {
		s = strings.TrimSpace(p)
	}
	if x, err := strconv.ParseFloat(s, 64); err == nil {
		return x, !math.IsNaN(x) && !math.IsInf(x, 0)
	}
	for _, read := range []func(string) (float64, error){
		unit.BitsPerSecond, unit.Metres,
		func(s string) (float64, error) { n, err := unit.Bytes(s); return float64(n), err },
		func(s string) (float64, error) { d, err := time.ParseDuration(s); return d.Seconds(), err },
	} {
		if x, err := read(s); err == nil {
			return x, true
		}
	}
	return 0, false
}

// panels are the charts of one metric over one axis.
func (g *grouped) panels(m plan.Metric, x string, swept []string, values []*plan.PublishedValue) (out []*Chart) {
	var split, averaged []string
	for _, axis := range swept {
		stated := slices.ContainsFunc(values, func(f *plan.PublishedValue) bool { return ValueOf(f.Where, axis) != "" })
		switch {
		case axis == x:
		case len(values) > 0 && !stated && axis != CampaignAxis:
			averaged = append(averaged, axis)
		default:
			split = append(split, axis)
		}
	}
	reference := ""
	for _, f := range values {
		reference = cmp.Or(reference, f.Reference)
	}
	fixed := func(s *summarised) (cs []plan.Condition) {
		for _, axis := range split {
			cs = append(cs, plan.Condition{Axis: axis, Value: ValueOf(s.axes, axis)})
		}
		return cs
	}
	parts, _ := g.split(func(s *summarised) string { return ConditionText(fixed(s)) })
	for _, sub := range parts {
		c := &Chart{Group: g.name, Fixed: fixed(sub.runs[0]), Averaged: averaged, Axis: x, Metric: m, Reference: reference}
		c.Stations, c.Numeric = sub.stations(x)
		sub.draw(c, values)
		out = append(out, c)
	}
	return out
}

// draw fills a chart's lines from the runs of its conditions.
func (g *grouped) draw(c *Chart, values []*plan.PublishedValue) {
	names, labels := g.treatments(nil)
	for _, b := range bounds { // only to show what is published of one
		if slices.ContainsFunc(values, func(f *plan.PublishedValue) bool { return f.Treatment == b.name }) {
			names = append(names, b.name)
		}
	}
	_, byStation := g.split(func(s *summarised) string { return ValueOf(s.axes, c.Axis) })
	for _, name := range names {
		if c.Metric == plan.MetricGain && name == c.Reference {
			continue // 0 by definition
		}
		line := Curve{Treatment: name, Label: cmp.Or(labels[name], name)}
		some := false
		for _, x := range c.Stations {
			at := []plan.Condition{{Axis: c.Axis, Value: x.Label}}
			e, runs, _, why := byStation[x.Label].mean(c.Metric, name, c.Reference, nil)
			p := CurvePoint{Estimate: e, Limits: noLimits, Known: runs > 0}
			switch {
			case boundNamed(name) != nil:
				// Over all iterations, it is not comparable with what treatments reached in
				// some of them: each point has its own Limits instead.
				p.Estimate, p.Known = noEstimate, false
			case p.Known:
				p.Limits = byStation[x.Label].limits(c.Metric, name, c.Reference)
			}
			if reason, gone := strings.CutPrefix(why, "missing: "); gone {
				line.Missing = reason
			}
			for _, f := range values {
				value := f.Value != nil || f.AtLeast != nil || f.AtMost != nil
				if value && f.Treatment == name && ValueOf(f.Where, c.Axis) == x.Label && meets(append(slices.Clone(c.Fixed), at...), f.Where) {
					p.Published = f
				}
			}
			some = some || p.Known || p.Published != nil
			line.Points = append(line.Points, p)
		}
		if some || line.Missing != "" {
			c.Curves = append(c.Curves, line)
		}
	}
}

// NothingSwept is what reports say that have no chart.
const NothingSwept = "Nothing is swept: the runs do not differ in any axis."

// Text is the value with half its interval, or with both of its ends where it ends at
// 0, and in square brackets what is published.
func (p *CurvePoint) Text() string {
	s := wording.None
	if p.Known {
		s = wording.Short(Rounded(p.Mean))
		switch r := p.Interval(); {
		case r == nil:
		case r.Low == 0 && p.Mean > 0: // cut off there: it is not symmetric
			s += " (0 to " + strconv.FormatFloat(r.High, 'g', 2, 64) + ")"
		default:
			s += " ± " + strconv.FormatFloat(p.Half(), 'g', 2, 64)
		}
	}
	if p.Published != nil {
		s += " [" + PublishedText(p.Published) + "]"
	}
	return s
}
