package report

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"linktrial/internal/unit"
	"linktrial/orchestrator/plan"
)

// chart is a metric over one swept axis, a line a treatment.
type chart struct {
	group     string
	fixed     []plan.Condition // of the other axes; those left out are averaged over
	averaged  []string
	axis      string
	metric    plan.Metric
	reference string
	xs        []station
	numeric   bool // x has a scale; else its values stand side by side
	lines     []curve
}

// station is one value of the swept axis.
type station struct {
	label string
	at    float64
}

type curve struct {
	treatment, label string
	points           []curvePoint // one for each station
	missing          string
}

type curvePoint struct {
	estimate
	known     bool
	published *plan.Figure // a value or bounds; nil: none
}

// charts are the parameter curves of the campaign: for each group and each
// metric that its published figures have (KB/s where there are none), over the
// axis that the figures' shapes name, else the longest with numbers, one chart
// for each combination of the other axes. Axes that no published figure of the
// metric states are averaged over, as the paper did.
func (v *view) charts() []*chart {
	var out []*chart
	for _, g := range v.groups() {
		var figures []*plan.Figure
		for i := range v.ds.Figures {
			if v.ds.Figures[i].Group == g.name {
				figures = append(figures, &v.ds.Figures[i])
			}
		}
		swept := g.swept()
		var metrics []plan.Metric
		for _, f := range figures {
			if !slices.Contains(metrics, f.Metric) && f.Text == "" {
				metrics = append(metrics, f.Metric)
			}
		}
		if len(metrics) == 0 {
			metrics = []plan.Metric{plan.MetricKBps}
		}
		for _, m := range metrics {
			of := slices.DeleteFunc(slices.Clone(figures), func(f *plan.Figure) bool { return f.Metric != m || f.Text != "" })
			for _, x := range g.over(swept, of) {
				out = append(out, g.panels(m, x, swept, of)...)
			}
		}
	}
	return out
}

// swept are the axes with more than one value.
func (g *grouped) swept() (out []string) {
	if len(g.axes) == 0 {
		return nil
	}
	for _, c := range g.axes[0] {
		if len(g.values(c.Axis, nil)) > 1 {
			out = append(out, c.Axis)
		}
	}
	return out
}

// over chooses the axes to draw over.
func (g *grouped) over(swept []string, figures []*plan.Figure) (out []string) {
	for _, f := range figures {
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
func (g *grouped) stations(axis string) (xs []station, numeric bool) {
	numeric = true
	seen := map[string]bool{}
	for i, s := range g.runs {
		label := valueOf(g.axes[i], axis)
		if label == "" || seen[label] {
			continue
		}
		seen[label] = true
		at, ok := axisNumber(s.run, axis, label)
		numeric = numeric && ok
		xs = append(xs, station{label, at})
	}
	if !numeric {
		for i := range xs {
			xs[i].at = float64(i)
		}
		return xs, false
	}
	slices.SortStableFunc(xs, func(a, b station) int { return cmp.Compare(a.at, b.at) })
	return xs, true
}

// axisNumber is where a value of an axis lies on a scale.
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
func (g *grouped) panels(m plan.Metric, x string, swept []string, figures []*plan.Figure) (out []*chart) {
	var split, averaged []string
	for _, axis := range swept {
		stated := slices.ContainsFunc(figures, func(f *plan.Figure) bool { return valueOf(f.Where, axis) != "" })
		switch {
		case axis == x:
		case len(figures) > 0 && !stated:
			averaged = append(averaged, axis)
		default:
			split = append(split, axis)
		}
	}
	reference := ""
	for _, f := range figures {
		reference = cmp.Or(reference, f.Reference)
	}
	byFixed := map[string]*grouped{}
	var order []*grouped
	var fixed [][]plan.Condition
	for i := range g.runs {
		var cs []plan.Condition
		for _, axis := range split {
			cs = append(cs, plan.Condition{Axis: axis, Value: valueOf(g.axes[i], axis)})
		}
		key := conditionText(cs)
		sub := byFixed[key]
		if sub == nil {
			sub = &grouped{name: g.name}
			byFixed[key], order, fixed = sub, append(order, sub), append(fixed, cs)
		}
		sub.runs, sub.axes = append(sub.runs, g.runs[i]), append(sub.axes, g.axes[i])
	}
	for i, sub := range order {
		c := &chart{group: g.name, fixed: fixed[i], averaged: averaged, axis: x, metric: m, reference: reference}
		c.xs, c.numeric = sub.stations(x)
		sub.draw(c, figures)
		out = append(out, c)
	}
	return out
}

// draw fills a chart's lines from the runs of its conditions.
func (g *grouped) draw(c *chart, figures []*plan.Figure) {
	names, labels := g.treatments(nil)
	if c.metric != plan.MetricTimeouts && c.metric != plan.MetricCompleted && c.metric != plan.MetricFlowMbitps {
		names = append(names, plan.Ideal)
	}
	for _, name := range names {
		if c.metric == plan.MetricGain && name == c.reference {
			continue // 0 by definition
		}
		line := curve{treatment: name, label: cmp.Or(labels[name], name)}
		some := false
		for _, x := range c.xs {
			at := []plan.Condition{{Axis: c.axis, Value: x.label}}
			e, runs, _, why := g.mean(c.metric, name, c.reference, at)
			p := curvePoint{estimate: e, known: runs > 0}
			if reason, gone := strings.CutPrefix(why, "missing: "); gone {
				line.missing = reason
			}
			for _, f := range figures {
				value := f.Value != nil || f.AtLeast != nil || f.AtMost != nil
				if value && f.Treatment == name && valueOf(f.Where, c.axis) == x.label && meets(append(slices.Clone(c.fixed), at...), f.Where) {
					p.published = f
				}
			}
			some = some || p.known || p.published != nil
			line.points = append(line.points, p)
		}
		if some || line.missing != "" {
			c.lines = append(c.lines, line)
		}
	}
}

func (c *chart) heading() string {
	parts := []string{metricTitle(c.metric) + " over " + c.axis}
	if c.group != "" {
		parts = append([]string{c.group}, parts...)
	}
	if len(c.fixed) > 0 {
		parts = append(parts, conditionText(c.fixed))
	}
	if len(c.averaged) > 0 {
		parts = append(parts, "averaged over "+strings.Join(c.averaged, ", "))
	}
	return clean(strings.Join(parts, " · "))
}

func metricTitle(m plan.Metric) string {
	if n, ok := metricNames[m]; ok {
		return n.long
	}
	return clean(string(m))
}

// publishedText is a published value or its bounds.
func publishedText(f *plan.Figure) string {
	switch {
	case f.Value != nil:
		return short(f.Value)
	case f.AtMost == nil:
		return "≥ " + short(f.AtLeast)
	case f.AtLeast == nil:
		return "≤ " + short(f.AtMost)
	}
	return short(f.AtLeast) + " to " + short(f.AtMost)
}

const nothingSwept = "Nothing is swept: the runs do not differ in any axis."

func renderSweep(v *view) ([]byte, error) {
	charts := v.charts()
	var b strings.Builder
	for i, c := range charts {
		if i > 0 {
			b.WriteString("\n")
		}
		writeChart(&b, c)
	}
	if len(charts) == 0 {
		paragraph(&b, nothingSwept)
	} else {
		b.WriteString("\n")
		paragraph(&b, "mean ± half of the 95 % interval (Student's t); published figures in brackets.")
	}
	writeNotes(&b, v)
	return []byte(b.String()), nil
}

func writeChart(b *strings.Builder, c *chart) {
	paragraph(b, c.heading())
	var columns [][]string // header, then a cell for each station
	for _, l := range c.lines {
		if l.missing != "" && !slices.ContainsFunc(l.points, func(p curvePoint) bool { return p.published != nil }) {
			continue // named below
		}
		column := []string{clean(l.label)}
		for _, p := range l.points {
			column = append(column, p.text())
		}
		columns = append(columns, column)
	}
	names := []string{clean(c.axis)}
	for _, x := range c.xs {
		names = append(names, clean(x.label))
	}
	width := func(column []string) (w int) {
		for _, s := range column {
			w = max(w, utf8.RuneCountInString(s))
		}
		return w
	}
	for len(columns) > 0 {
		g := grid{header: names[:1]}
		for i := range c.xs {
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
	for _, l := range c.lines {
		if l.missing != "" {
			paragraph(b, clean(l.label)+": missing: "+clean(l.missing))
		}
	}
}

func (p *curvePoint) text() string {
	s := none
	if p.known {
		s = short(figure(p.mean))
		if p.interval() != nil {
			half := p.half()
			s += " ± " + strconv.FormatFloat(half, 'g', 2, 64)
		}
	}
	if p.published != nil {
		s += " [" + publishedText(p.published) + "]"
	}
	return s
}
