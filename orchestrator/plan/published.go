package plan

import (
	"slices"
	"strings"

	"linktrial/internal/unit"
	"linktrial/internal/yamldoc"
)

// Published is one row of a paper's values, of one cell of the plan. Rates are in KB/s,
// 1 KB = 1024 bytes.
type Published struct {
	Group string `json:"group,omitempty"`
	// Where tells the cell from others of the same radio and topology.
	Where     []Condition `json:"where,omitempty"`
	Radio     string      `json:"radio"`
	Topology  string      `json:"topology"`
	Treatment string      `json:"treatment"`
	N         int         `json:"n"`
	Average   float64     `json:"average_kb_per_second"`
	Maximum   float64     `json:"maximum_kb_per_second"`
	Minimum   float64     `json:"minimum_kb_per_second"`
	SD        float64     `json:"sd_kb_per_second"` // sample standard deviation
	Source    string      `json:"source"`
}

// Metric is what a published value measures.
type Metric string

const (
	// MetricNormalised is throughput over the radio's bandwidth before any code (decola-2006, equation 7).
	MetricNormalised Metric = "normalised-throughput"
	// MetricGain is 100 · (T_ref − T) / T_ref of transfer times (decola-2006, equation 8), in percent.
	MetricGain Metric = "gain-percent"
	// MetricKBps, MetricKbitps and MetricMbitps are throughput: in KB of 1024 bytes, and in
	// thousands and millions of bits, a second. Of several flows, their sum.
	MetricKBps   Metric = "throughput-kb-per-s"
	MetricKbitps Metric = "throughput-kbit-per-s"
	MetricMbitps Metric = "throughput-mbit-per-s"
	// MetricFlowMbitps is the mean over the flows of the published value's treatment in a mix.
	MetricFlowMbitps Metric = "flow-throughput-mbit-per-s"
	// MetricTimeouts is the number of retransmission timeouts.
	MetricTimeouts Metric = "timeouts"
	// MetricCompleted is the share of trials that succeeded, 0…1.
	MetricCompleted Metric = "completed-share"
)

var metrics = []Metric{MetricNormalised, MetricGain, MetricKBps, MetricKbitps, MetricMbitps, MetricFlowMbitps, MetricTimeouts, MetricCompleted}

// Ideal as a published value's treatment is the all-knowing sender.
const Ideal = "ideal"

// PublishedValue is a published value of any form: a metric of the cells that meet
// Where (averaged over what it leaves open), and exactly one statement on it.
type PublishedValue struct {
	Group     string      `json:"group,omitempty"`
	Where     []Condition `json:"where,omitempty"`
	Treatment string      `json:"treatment,omitempty"` // or mix, or Ideal; empty: every treatment
	Reference string      `json:"reference,omitempty"` // of MetricGain
	Metric    Metric      `json:"metric"`
	// About marks a value read from a chart or printed as approximate.
	About  bool   `json:"about,omitempty"`
	Source string `json:"source"`

	// Value is the number itself.
	Value *float64 `json:"value,omitempty"`
	// AtLeast and AtMost, one or both, bound it.
	AtLeast *float64 `json:"at_least,omitempty"`
	AtMost  *float64 `json:"at_most,omitempty"`
	// ChangePercent is by how much the metric changes from the cells that meet
	// RelativeTo to those that meet Where.
	ChangePercent *float64    `json:"change_percent,omitempty"`
	RelativeTo    []Condition `json:"relative_to,omitempty"`
	// Best is the axis's value at which the metric is highest.
	Best *Condition `json:"best,omitempty"`
	// Falls and Rises name an axis along whose values, in the order of the
	// plan, the metric does so.
	Falls string `json:"falls,omitempty"`
	Rises string `json:"rises,omitempty"`
	// FlatFrom is the axis's value from which on the metric no longer changes.
	FlatFrom *Condition `json:"flat_from,omitempty"`
	// Order is treatments (or radios, by Axis of Where) from the lowest to the highest.
	Order []string `json:"order,omitempty"`
	// Text is a statement for people alone.
	Text string `json:"text,omitempty"`
}

func (ps *parser) published(r yamldoc.Mapping) {
	v := r.Field("published")
	if !v.Present() {
		return
	}
	m := publishedKeys.Read(v)
	src := m.Field("source").Required().String("")
	if !r.OK() || len(ps.plan.Cells) == 0 {
		return // the names have problems of their own; do not repeat them for every row
	}
	if !m.Field("rows").Present() && !m.Field("figures").Present() {
		m.Field("rows").Required()
	}
	ps.rows(m.Field("rows"), src)
	values := m.Field("figures").List()
	if len(values) > maxPublished {
		m.Field("figures").Problem("expected at most %d published values, found %d", maxPublished, len(values))
		return
	}
	for _, e := range values {
		if f, ok := ps.publishedValue(e, src); ok {
			ps.plan.PublishedValues = append(ps.plan.PublishedValues, f)
		}
	}
}

func (ps *parser) rows(v yamldoc.Value, src string) {
	p := ps.plan
	var radios, topologies, treatments []string
	for _, c := range p.Cells {
		if !slices.Contains(radios, c.Radio.Name) {
			radios = append(radios, c.Radio.Name)
		}
		if !slices.Contains(topologies, c.Topology.Name) {
			topologies = append(topologies, c.Topology.Name)
		}
	}
	for _, t := range p.Treatments {
		treatments = append(treatments, t.Name)
	}
	list := v.List()
	if len(list) > maxPublished {
		v.Problem("expected at most %d rows, found %d", maxPublished, len(list))
		return
	}
	for _, e := range list {
		row := rowKeys.Read(e)
		value := func(key string) float64 { return row.Field(key).Required().Float(0, 0, 1e12) }
		w := Published{
			N:       row.Int("n"),
			Average: value("average"), Maximum: value("maximum"), Minimum: value("minimum"), SD: value("sd"),
			Source: row.Field("source").String(src),
		}
		w.Radio, _ = known(row.Field("radio").Required(), "radio of the plan", radios)
		w.Topology, _ = known(row.Field("topology").Required(), "topology of the plan", topologies)
		w.Treatment, _ = known(row.Field("treatment").Required(), "treatment", treatments)
		if row.Field("average").OK() && row.Field("minimum").OK() && row.Field("maximum").OK() && (w.Average < w.Minimum || w.Average > w.Maximum) {
			row.Field("average").Problem("%g does not lie between minimum %g and maximum %g", w.Average, w.Minimum, w.Maximum)
		}
		if w.Radio != "" && w.Topology != "" && w.Treatment != "" && ps.rowOf(e, row.Mapping, &w) {
			p.Published = append(p.Published, w)
		}
	}
}

// rowOf reads which cell a row is of, of those with its radio and topology: a value of one
// would stand beside the results of the others as well.
func (ps *parser) rowOf(e yamldoc.Value, row yamldoc.Mapping, w *Published) bool {
	p := ps.plan
	if g := row.Field("group"); g.Present() {
		if w.Group, _ = known(g, "group", p.Groups); w.Group == "" {
			return false
		}
	}
	axes := ps.axes[w.Group]
	if w.Group == "" && len(p.Groups) > 0 {
		axes = nil // each group has its own
	}
	where, ok := conditions(row.Field("where").Mapping(axisNames(axes)...), axes)
	if w.Where = where; !ok {
		return false
	}
	var cells []string
	for i := range p.Cells {
		if c := p.Cells[i].Sheet(i); c.Radio == w.Radio && c.Topology == w.Topology && (w.Group == "" || c.Group == w.Group) && Meets(&c, w.Where) {
			cells = append(cells, strings.Trim(unit.FormatPayload(c.SizeBytes)+" · "+c.Words(), " ·"))
		}
	}
	switch {
	case len(cells) == 0:
		e.Problem("no run of the plan has %s at %s with these conditions", w.Radio, w.Topology)
	case len(cells) > 1:
		e.Problem("%d runs of the plan have %s at %s (%s; %s; …): name one of them with where, and with group where the plan has groups", len(cells), w.Radio, w.Topology, cells[0], cells[1])
	case slices.ContainsFunc(p.Published, w.same):
		e.Problem("the published values of %s with %s at %s are given twice", w.Treatment, w.Radio, w.Topology)
	default:
		return true
	}
	return false
}

func (w *Published) same(o Published) bool {
	return o.Radio == w.Radio && o.Topology == w.Topology && o.Treatment == w.Treatment && o.Group == w.Group && slices.Equal(o.Where, w.Where)
}

func (ps *parser) publishedValue(v yamldoc.Value, src string) (PublishedValue, bool) {
	m := publishedValueKeys.Read(v)
	if !v.IsMapping() {
		return PublishedValue{}, false
	}
	p := ps.plan
	f := PublishedValue{About: m.Bool("about"), Source: m.Field("source").String(src), Text: m.Field("text").String("")}
	f.Metric = Metric(m.Word("metric"))
	if g := m.Field("group"); len(p.Groups) > 0 {
		f.Group, _ = known(g.Required(), "group", p.Groups)
		if f.Group == "" {
			return f, false
		}
	} else if g.Present() {
		g.Problem("the plan has no groups")
	}
	axes := ps.axes[f.Group]
	all := trialNames(p)
	if t := m.Field("treatment"); t.Present() {
		f.Treatment, _ = known(t, "treatment", append(slices.Clone(all), Ideal))
	}
	if t := m.Field("reference"); t.Present() || f.Metric == MetricGain {
		f.Reference, _ = known(t.Required(), "treatment", all)
	}
	var good, also bool
	f.Where, good = conditions(m.Field("where").Mapping(axisNames(axes)...), axes)
	f.RelativeTo, also = conditions(m.Field("relative_to").Mapping(axisNames(axes)...), axes)
	f.readStatements(m.Mapping, axes)
	f.Order = names(m.Field("order"), "treatment or radio", append(slices.Clone(all), axes[0].labels...))
	if good && also {
		ps.oneStatement(v, m.Mapping, &f)
	}
	return f, true
}

// readStatements reads what a published value states of its metric, but for order and text.
func (f *PublishedValue) readStatements(m yamldoc.Mapping, axes []axis) {
	number := func(key string) *float64 {
		x := m.Field(key)
		if !x.Present() {
			return nil
		}
		n := x.Float(0, -1e12, 1e12)
		return &n
	}
	one := func(key string) *Condition {
		x := m.Field(key)
		if !x.Present() {
			return nil
		}
		got, ok := conditions(x.Mapping(axisNames(axes)...), axes)
		if x.IsMapping() && ok && len(got) != 1 {
			x.Problem("expected one axis and its value")
		}
		if len(got) != 1 {
			return nil
		}
		return &got[0]
	}
	along := func(key string) string {
		if !m.Field(key).Present() {
			return ""
		}
		a, _ := known(m.Field(key), "axis", axisNames(axes))
		return a
	}
	f.Value, f.AtLeast, f.AtMost, f.ChangePercent = number("value"), number("at_least"), number("at_most"), number("change_percent")
	f.Best, f.FlatFrom, f.Falls, f.Rises = one("best"), one("flat_from"), along("falls"), along("rises")
}

func (ps *parser) oneStatement(v yamldoc.Value, m yamldoc.Mapping, f *PublishedValue) {
	var given []string
	for _, key := range statements {
		if m.Field(key).Present() {
			given = append(given, key)
		}
	}
	bounds := slices.Equal(given, []string{"at_least", "at_most"})
	switch {
	case len(given) != 1 && !bounds:
		v.Problem("expected one statement (value, at_least, at_most, change_percent, best, falls, rises, flat_from, order or text), found %d", len(given))
	case bounds && m.Field("at_least").OK() && m.Field("at_most").OK() && *f.AtLeast > *f.AtMost:
		v.Problem("at_least %g is more than at_most %g", *f.AtLeast, *f.AtMost)
	case m.Field("change_percent").Present() != m.Field("relative_to").Present():
		v.Problem("change_percent and relative_to go together")
	}
	for _, where := range [][]Condition{f.Where, f.RelativeTo} {
		if !slices.ContainsFunc(ps.plan.Cells, func(c Cell) bool {
			sc := c.Sheet(0)
			return c.Group == f.Group && Meets(&sc, where)
		}) {
			v.Problem("no run of the plan meets these conditions")
			return
		}
	}
}

// trialNames is the names of all treatments and mixes.
func trialNames(p *Plan) (out []string) {
	for _, t := range p.Treatments {
		out = append(out, t.Name)
	}
	for _, m := range p.Mixes {
		out = append(out, m.Name)
	}
	return out
}
