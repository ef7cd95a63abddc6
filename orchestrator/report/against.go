package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"linktrial/internal/stats"
	"linktrial/orchestrator/plan"
	"linktrial/orchestrator/report/wording"
)

// Against is the published values of the plan beside ours.
type Against struct {
	Lines   []AgainstLine  `json:"lines"`
	Missing []Missing      `json:"missing"`
	Summary AgainstSummary `json:"summary"`
}

// Missing is a treatment that could not be run, with the reason.
type Missing struct {
	Treatment string `json:"treatment"`
	Label     string `json:"label"`
	Reason    string `json:"reason"`
}

// Outcome of one published value. Closed list.
type Outcome string

// The outcomes. A statement holds within the intervals where what speaks
// against it is less than our values' confidence intervals.
const (
	Within10     Outcome = "within 10 %"
	Within25     Outcome = "within 25 %"
	Beyond25     Outcome = "beyond 25 %"
	Inside       Outcome = "inside"
	Outside      Outcome = "outside"
	Holds        Outcome = "holds"
	HoldsWithin  Outcome = "holds within CI"
	DoesNotHold  Outcome = "does not hold"
	OutcomeGone  Outcome = "missing"  // the treatment could not be run
	OutcomeNone  Outcome = "no value" // ours has none
	OutcomeWords Outcome = "words"    // a statement for people alone
)

// AgainstLine is one published value and ours.
type AgainstLine struct {
	Group     string `json:"group,omitempty"`
	Where     string `json:"where,omitempty"` // the conditions, for people; what they leave open is averaged over
	Treatment string `json:"treatment,omitempty"`
	Label     string `json:"label"`
	Metric    string `json:"metric"`
	Kind      string `json:"kind"`      // value, range, change, shape or text
	Statement string `json:"statement"` // what is published, for people
	About     bool   `json:"about,omitempty"`
	Source    string `json:"source"`

	Published *float64 `json:"published"`      // a value, or a change in percent
	Low       *float64 `json:"published_low"`  // of a range
	High      *float64 `json:"published_high"` // of a range
	Ours      *float64 `json:"ours"`
	CI        *Range   `json:"ours_ci95"`
	N         int      `json:"n"`    // trials
	Runs      int      `json:"runs"` // that ours is the mean over
	Deviation *float64 `json:"deviation_percent"`
	Outcome   Outcome  `json:"outcome"`
	Detail    string   `json:"detail,omitempty"` // why, or the values that a shape was judged by
	// Imported says which campaigns of the report were imported, and from where; empty: none.
	Imported string `json:"imported,omitempty"`

	Short string `json:"-"` // of Metric, for terminals
}

// Place names where the value is from: the group and its conditions.
func (l *AgainstLine) Place() string {
	parts := slices.DeleteFunc([]string{l.Group, l.Where}, func(s string) bool { return s == "" })
	return wording.Clean(cmp.Or(strings.Join(parts, " · "), "all runs"))
}

// OffText is how far our value is from the published one, in the terms of its kind.
func (l *AgainstLine) OffText() string {
	switch {
	case l.Deviation == nil:
		return ""
	case l.Kind == "change":
		return strings.TrimSuffix(wording.Deviation(l.Deviation), " %") + " pt"
	}
	return wording.Deviation(l.Deviation)
}

// OursText is our value; empty: there is none.
func (l *AgainstLine) OursText() string {
	if l.Ours == nil {
		return ""
	}
	if l.Kind == "change" {
		return wording.Deviation(l.Ours)
	}
	return wording.Short(l.Ours)
}

// CIText is its interval; empty: there is none.
func (l *AgainstLine) CIText() string {
	if l.CI == nil {
		return ""
	}
	return l.CI.Text(wording.Short)
}

// AgainstSummary counts outcomes. What has no value of ours is in no other count.
type AgainstSummary struct {
	Values      int `json:"values"`
	Within10    int `json:"within_10_percent"`
	Within25    int `json:"within_25_percent"` // those within 10 % too
	Ranges      int `json:"ranges"`
	Inside      int `json:"inside"`
	Shapes      int `json:"shapes"`
	Hold        int `json:"hold"`
	HoldOnlyCI  int `json:"hold_within_ci"` // among Hold
	MissingOnes int `json:"missing"`
	NoValue     int `json:"no_figure"`
	Words       int `json:"words"`
}

// flat is how far values may differ, relative, and still count as no change
// where intervals do not say more.
const flat = 0.05

// Against holds the published values of the plan against ours.
func (v *Analysis) Against() *Against {
	a := &Against{Lines: []AgainstLine{}, Missing: []Missing{}}
	for i := range v.Tables {
		a.rows(&v.Tables[i])
		for _, r := range v.Tables[i].Rows {
			if r.Missing != "" && !slices.ContainsFunc(a.Missing, func(m Missing) bool { return m.Treatment == r.Treatment }) {
				a.Missing = append(a.Missing, Missing{r.Treatment, r.Label, r.Missing})
			}
		}
	}
	groups := v.groups()
	for i := range v.Dataset.PublishedValues {
		f := &v.Dataset.PublishedValues[i]
		k := slices.IndexFunc(groups, func(g *grouped) bool { return g.name == f.Group })
		if k < 0 {
			continue // the results are of one run, of another group
		}
		g := groups[k].named()
		if !slices.ContainsFunc(g.runs, func(s *summarised) bool { return meets(s.axes, f.Where) }) {
			continue // of runs that are not among these
		}
		names, labels := g.treatments(f.Where)
		if f.Treatment != "" || len(f.Order) > 0 || f.Text != "" {
			names = []string{f.Treatment}
		}
		for _, name := range names {
			l := AgainstLine{Group: f.Group, Where: ConditionText(f.Where), Treatment: name, Label: cmp.Or(labels[name], name, "all"),
				Metric: string(f.Metric), Short: shortName(f.Metric), About: f.About, Source: f.Source}
			g.judge(&l, f, name, labels)
			a.Lines = append(a.Lines, l)
		}
	}
	a.Lines = without(a.Lines, func(l *AgainstLine) bool { return v.leavesOut(l.Treatment) })
	a.gather()
	for i := range a.Lines {
		a.Lines[i].Imported = v.Dataset.Imported()
		a.Summary.count(&a.Lines[i])
	}
	return a
}

// gather puts the lines of the same conditions together, in the order in which
// the conditions appear.
func (a *Against) gather() {
	order := map[string]int{}
	for i := range a.Lines {
		if p := a.Lines[i].Place(); order[p] == 0 {
			order[p] = len(order) + 1
		}
	}
	slices.SortStableFunc(a.Lines, func(x, y AgainstLine) int { return order[x.Place()] - order[y.Place()] })
}

// rows are values in the form of Table 2.
func (a *Against) rows(t *RunTable) {
	for i := range t.Rows {
		r := &t.Rows[i]
		p := r.Published
		if p == nil {
			continue
		}
		where := t.Topology + ", " + t.Radio
		for _, x := range []struct {
			name, short     string
			published       float64
			ours, deviation *float64
			ci              *Range
		}{
			{"average_kb_per_s", "average KB/s", p.AvgKBps, r.AverageKBps, p.AvgDeviation, r.MeanCI},
			{"max_kb_per_s", "max KB/s", p.MaxKBps, r.MaxKBps, p.MaxDeviation, nil},
			{"min_kb_per_s", "min KB/s", p.MinKBps, r.MinKBps, p.MinDeviation, nil},
			{"sd_kb_per_s", "SD KB/s", p.SDKBps, r.SDKBps, p.SDDeviation, nil},
		} {
			l := AgainstLine{Group: t.Group, Where: where, Treatment: r.Treatment, Label: r.Label, Metric: x.name, Short: x.short, Kind: "value",
				Published: Rounded(x.published), Source: p.Source, Ours: x.ours, CI: x.ci, N: r.Valid, Runs: 1, Deviation: x.deviation}
			l.Statement = wording.Short(l.Published)
			switch {
			case r.Missing != "":
				l.Outcome, l.Detail, l.Runs = OutcomeGone, r.Missing, 0
			case x.ours == nil:
				l.Outcome, l.Runs = OutcomeNone, 0
				if l.Detail = r.Troubles(); l.Detail == "" {
					l.Detail = "one trial has no such value"
				}
			default:
				l.Outcome = distance(x.deviation, *x.ours == x.published)
			}
			a.Lines = append(a.Lines, l)
		}
	}
}

func distance(deviation *float64, equal bool) Outcome {
	switch {
	case equal:
		return Within10
	case deviation == nil || math.Abs(*deviation) > 25:
		return Beyond25
	case math.Abs(*deviation) > 10:
		return Within25
	}
	return Within10
}

// judge fills in what is published and what we have for it.
func (g *grouped) judge(l *AgainstLine, f *plan.PublishedValue, treatment string, labels map[string]string) {
	l.Statement, l.Kind = statement(f, labels), "shape"
	switch {
	case f.Text != "":
		l.Kind, l.Outcome = "text", OutcomeWords
	case f.Value != nil, f.AtLeast != nil, f.AtMost != nil:
		e := g.fill(l, f, treatment, f.Where)
		if f.Value != nil {
			l.Kind, l.Published = "value", Rounded(*f.Value)
		} else {
			l.Kind, l.Low, l.High = "range", f.AtLeast, f.AtMost
		}
		if l.Outcome != "" {
			return
		}
		if f.Value != nil {
			l.Deviation = Rounded(stats.DeviationPercent(*f.Value, e.Mean))
			l.Outcome = distance(l.Deviation, e.Mean == *f.Value)
			return
		}
		l.Outcome = Inside
		if f.AtLeast != nil && e.Mean < *f.AtLeast || f.AtMost != nil && e.Mean > *f.AtMost {
			l.Outcome = Outside
		}
	case f.ChangePercent != nil:
		g.judgeChange(l, f, treatment)
	case len(f.Order) > 0:
		g.judgeOrder(l, f, labels)
	default:
		g.judgeAlong(l, f, treatment)
	}
}

// fill takes our value over; the outcome stays empty where there is one.
func (g *grouped) fill(l *AgainstLine, f *plan.PublishedValue, treatment string, where []plan.Condition) Estimate {
	e, runs, of, why := g.mean(f.Metric, treatment, f.Reference, where)
	if why != "" {
		l.lacks(why)
		return e
	}
	l.Ours, l.CI, l.N, l.Runs = Rounded(e.Mean), e.Interval(), e.N, runs
	if runs < of {
		l.Detail = fmt.Sprintf("%d of %d runs have a value", runs, of)
	}
	return e
}

// lacks says that we have no value, and why.
func (l *AgainstLine) lacks(why string) {
	l.Outcome, l.Detail = OutcomeNone, why
	if reason, gone := strings.CutPrefix(why, "missing: "); gone {
		l.Outcome, l.Detail = OutcomeGone, reason
	}
}

func (g *grouped) judgeChange(l *AgainstLine, f *plan.PublishedValue, treatment string) {
	l.Kind, l.Published = "change", Rounded(*f.ChangePercent)
	// What both sides share need be said only once.
	base := slices.DeleteFunc(slices.Clone(f.Where), func(c plan.Condition) bool {
		return slices.ContainsFunc(f.RelativeTo, func(r plan.Condition) bool { return r.Axis == c.Axis })
	})
	from := g.fill(l, f, treatment, append(base, f.RelativeTo...))
	if l.Outcome != "" {
		return
	}
	to := g.fill(l, f, treatment, f.Where)
	if l.Outcome != "" {
		l.Ours, l.CI = nil, nil
		return
	}
	l.Detail = fmt.Sprintf("%s to %s", wording.Short(Rounded(from.Mean)), wording.Short(Rounded(to.Mean)))
	l.CI = nil
	if l.Ours = Rounded(stats.DeviationPercent(from.Mean, to.Mean)); l.Ours == nil {
		l.Outcome, l.Detail = OutcomeNone, "ours changes from 0"
		return
	}
	// A change is compared by points: a fall of 80 % beside one of 82 % is 2 off.
	off := Rounded(*l.Ours - *f.ChangePercent)
	l.Deviation, l.Outcome = off, distance(off, false)
	l.Detail += "; off by points of percent"
}

// place is one of the values that a shape is judged by.
type place struct {
	name string
	Estimate
}

func describe(ps []place) string {
	parts := make([]string, len(ps))
	for i, p := range ps {
		parts[i] = p.name + ": " + wording.Short(Rounded(p.Mean))
	}
	return strings.Join(parts, ", ")
}

// along are the values along an axis, in the order of the plan.
func (g *grouped) along(l *AgainstLine, f *plan.PublishedValue, treatment, axis string) (ps []place) {
	where := slices.DeleteFunc(slices.Clone(f.Where), func(c plan.Condition) bool { return c.Axis == axis })
	why := ""
	for _, v := range g.values(axis, where) {
		e, _, _, reason := g.mean(f.Metric, treatment, f.Reference, append(slices.Clone(where), plan.Condition{Axis: axis, Value: v}))
		if reason != "" {
			why = reason
			continue
		}
		ps, l.N, l.Runs = append(ps, place{v, e}), l.N+e.N, l.Runs+1
	}
	if len(ps) < 2 {
		l.lacks(cmp.Or(why, "fewer than two values of "+axis))
		return nil
	}
	l.Detail = describe(ps)
	return ps
}

// below reports whether a is below b: it holds, the intervals allow it, or it does not hold.
func below(a, b Estimate) Outcome {
	switch {
	case a.Mean < b.Mean:
		return Holds
	case a.Mean-b.Mean <= math.Hypot(a.Half(), b.Half()):
		return HoldsWithin
	}
	return DoesNotHold
}

// worst is the weaker of two outcomes of a shape.
func worst(a, b Outcome) Outcome {
	for _, o := range []Outcome{DoesNotHold, HoldsWithin} {
		if a == o || b == o {
			return o
		}
	}
	return Holds
}

func (g *grouped) judgeAlong(l *AgainstLine, f *plan.PublishedValue, treatment string) {
	axis, value := cmp.Or(f.Falls, f.Rises), ""
	if c := cmp.Or(f.Best, f.FlatFrom); c != nil {
		axis, value = c.Axis, c.Value
	}
	ps := g.along(l, f, treatment, axis)
	if ps == nil {
		return
	}
	at := slices.IndexFunc(ps, func(p place) bool { return p.name == value })
	if value != "" && at < 0 {
		l.Outcome, l.Detail = OutcomeNone, "no value at "+axis+" "+value
		return
	}
	if value == "" {
		first, last := ps[0].Estimate, ps[len(ps)-1].Estimate
		rising := func(a, b Estimate) Outcome { return below(a, b) }
		if f.Falls != "" {
			rising = func(a, b Estimate) Outcome { return below(b, a) }
		}
		l.Outcome = Holds
		for i := 1; i < len(ps); i++ {
			l.Outcome = worst(l.Outcome, rising(ps[i-1].Estimate, ps[i].Estimate))
		}
		// Steps that the intervals forgive must not add up to nothing.
		if rising(first, last) != Holds || math.Abs(first.Mean-last.Mean) <= math.Hypot(first.Half(), last.Half()) {
			l.Outcome = DoesNotHold
		}
		return
	}
	l.Outcome = Holds
	for i, p := range ps {
		switch {
		case f.Best != nil && i != at:
			l.Outcome = worst(l.Outcome, below(p.Estimate, ps[at].Estimate))
		case f.FlatFrom != nil && i > at && math.Abs(p.Mean-ps[at].Mean) > flat*math.Abs(ps[at].Mean):
			o := DoesNotHold
			if math.Abs(p.Mean-ps[at].Mean) <= math.Hypot(p.Half(), ps[at].Half()) {
				o = HoldsWithin
			}
			l.Outcome = worst(l.Outcome, o)
		}
	}
}

// judgeOrder is about treatments, or radios, from the lowest to the highest.
func (g *grouped) judgeOrder(l *AgainstLine, f *plan.PublishedValue, labels map[string]string) {
	var ps []place
	var gone []string
	for _, name := range f.Order {
		where, treatment := f.Where, name
		if slices.Contains(g.values("radio", nil), name) {
			where, treatment = append(slices.Clone(f.Where), plan.Condition{Axis: "radio", Value: name}), f.Treatment
		}
		e, _, _, why := g.mean(f.Metric, treatment, f.Reference, where)
		if why != "" {
			gone = append(gone, cmp.Or(labels[name], name)+" "+why)
			continue
		}
		ps, l.N, l.Runs = append(ps, place{cmp.Or(labels[name], name), e}), l.N+e.N, l.Runs+1
	}
	if len(ps) < 2 {
		l.Outcome, l.Detail = OutcomeNone, strings.Join(gone, "; ")
		return
	}
	l.Outcome = Holds
	for i := 1; i < len(ps); i++ {
		l.Outcome = worst(l.Outcome, below(ps[i-1].Estimate, ps[i].Estimate))
	}
	if l.Detail = describe(ps); len(gone) > 0 {
		l.Detail += "; left out: " + strings.Join(gone, "; ")
	}
}

func (s *AgainstSummary) count(l *AgainstLine) {
	switch l.Outcome {
	case OutcomeGone:
		s.MissingOnes++
		return
	case OutcomeNone:
		s.NoValue++
		return
	case OutcomeWords:
		s.Words++
		return
	}
	add := func(n *int, yes bool) {
		if yes {
			*n++
		}
	}
	switch l.Kind {
	case "value", "change":
		s.Values++
		add(&s.Within10, l.Outcome == Within10)
		add(&s.Within25, l.Outcome != Beyond25)
	case "range":
		s.Ranges++
		add(&s.Inside, l.Outcome == Inside)
	default:
		s.Shapes++
		add(&s.Hold, l.Outcome != DoesNotHold)
		add(&s.HoldOnlyCI, l.Outcome == HoldsWithin)
	}
}

// Sentences say the summary.
func (a *Against) Sentences() []string {
	s := &a.Summary
	var out []string
	say := func(n int, format string, args ...any) {
		if n > 0 {
			out = append(out, fmt.Sprintf(format, args...))
		}
	}
	say(s.Values, "Of %s beside ours, %d agree within 10 %% and %d within 25 %%.", wording.Plural(s.Values, "published value", "published values"), s.Within10, s.Within25)
	say(s.Ranges, "Of %s, ours lie inside %d.", wording.Plural(s.Ranges, "published range", "published ranges"), s.Inside)
	within := ""
	if s.HoldOnlyCI > 0 {
		within = fmt.Sprintf(" (%d only within the intervals)", s.HoldOnlyCI)
	}
	say(s.Shapes, "Of %s, %d hold%s.", wording.Plural(s.Shapes, "published shape", "published shapes"), s.Hold, within)
	say(s.MissingOnes, "%s of treatments that could not be run.", wording.Plural(s.MissingOnes, "published value is", "published values are"))
	say(s.NoValue, "For %s we have none.", wording.Plural(s.NoValue, "published value", "published values"))
	return out
}
