package report

import (
	"math"
	"strings"
	"testing"

	"linktrial/orchestrator/plan"
)

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		deviation *float64
		equal     bool
		want      Outcome
	}{
		{ptr(0.0), true, Within10}, {ptr(-10.0), false, Within10}, {ptr(10.1), false, Within25}, {ptr(-25.0), false, Within25},
		{ptr(25.1), false, Beyond25}, {nil, false, Beyond25}, {nil, true, Within10},
	} {
		if got := distance(c.deviation, c.equal); got != c.want {
			t.Errorf("%v, %v: %s, expected %s", deref(c.deviation), c.equal, got, c.want)
		}
	}
}

// What Against says of the campaign with two groups.
func TestAgainst(t *testing.T) {
	a := newView(swept(), false).against()
	find := func(group, treatment, statement string) *AgainstLine {
		t.Helper()
		for i := range a.Lines {
			if l := &a.Lines[i]; l.Group == group && l.Treatment == treatment && strings.Contains(l.Statement, statement) {
				return l
			}
		}
		t.Fatalf("no line of %s, %s, %q", group, treatment, statement)
		return nil
	}
	for _, c := range []struct {
		group, treatment, statement string
		kind                        string
		outcome                     Outcome
	}{
		{"test-1", "radio-newrto", "0.61", "value", Within25},
		{"test-1", plan.Ideal, "0.65", "value", Beyond25},
		{"test-1", "lt-tcp", "0.6", "value", OutcomeGone},
		{"test-1", "newreno", "about 0.3 to 0.5", "range", Outside},
		{"test-1", "radio-newrto", "at least 80", "range", Outside},
		{"test-1", "newreno", "rises with size", "shape", Holds},
		{"test-1", "lt-tcp", "rises with size", "shape", OutcomeGone},
		{"test-1", "", "TCP-NewReno < LT-TCP < TCP-radio-newRTO", "shape", Holds},
		{"loss", "sack", "-70.0 % from loss 0", "change", Within25},
		{"loss", "sack", "best at loss 0", "shape", Holds},
		{"loss", "sack", "falls with loss", "shape", Holds},
		{"loss", "sack", "flat from loss 0.05", "shape", DoesNotHold},
		{"loss", "bbr", "0.04", "value", Beyond25},
		{"loss", "sack", "dismal", "text", OutcomeWords},
	} {
		l := find(c.group, c.treatment, c.statement)
		if l.Kind != c.kind || l.Outcome != c.outcome {
			t.Errorf("%s, %s, %s: %s, %s, expected %s, %s (%s)", c.group, c.treatment, c.statement, l.Kind, l.Outcome, c.kind, c.outcome, l.Detail)
		}
	}
	// 1 MB at 1 Mbit/s over the two channels, four trials each; one of them failed for NewReno.
	if l := find("test-1", "radio-newrto", "0.61"); l.N != 8 || l.Runs != 2 || l.CI == nil {
		t.Errorf("line %+v", l)
	}
	if l := find("test-1", "newreno", "about 0.3"); l.N != 7 || l.Runs != 2 {
		t.Errorf("line %+v", l)
	}
	if len(a.Missing) != 2 || a.Missing[0].Treatment != "lt-tcp" || a.Missing[1].Treatment != "with-lt" {
		t.Errorf("missing %+v", a.Missing)
	}
	if s := a.Summary; s != (AgainstSummary{Values: 4, Within25: 2, Ranges: 2, Shapes: 6, Hold: 5, MissingOnes: 2, Words: 1}) {
		t.Errorf("summary %+v", s)
	}
}

// A mean over runs counts each alike, and its interval is between theirs.
func TestTogether(t *testing.T) {
	a, b := estimateOf([]float64{1, 3}), estimateOf([]float64{10, 10, 10, 10})
	e := together([]estimate{a, b})
	if e.mean != 6 || e.n != 6 || math.Abs(e.variance-0.25) > 1e-12 || e.degrees != 1 {
		t.Errorf("together %+v", e)
	}
	if e := together([]estimate{estimateOf([]float64{2, 2}), estimateOf([]float64{4, 4})}); e.interval() == nil || e.half() != 0 {
		t.Errorf("without spread %+v", e)
	}
	if e := together([]estimate{estimateOf([]float64{2}), estimateOf([]float64{4, 5})}); e.mean != 3.25 || e.interval() != nil {
		t.Errorf("with a run of one trial %+v", e)
	}
	if e := together(nil); e.n != 0 || figure(e.mean) != nil {
		t.Errorf("of nothing %+v", e)
	}
}

func TestBelow(t *testing.T) {
	exact := func(m float64) estimate { return estimate{mean: m, variance: 0, degrees: 3} }
	wide := estimate{mean: 2, variance: 0.01, degrees: 3}
	for _, c := range []struct {
		a, b estimate
		want Outcome
	}{
		{exact(1), exact(2), Holds}, {exact(2), exact(1), DoesNotHold}, {exact(2.2), wide, HoldsWithin}, {exact(2.4), wide, DoesNotHold}, {exact(1), exact(1), HoldsWithin},
	} {
		if got := below(c.a, c.b); got != c.want {
			t.Errorf("%v below %v: %s, expected %s", c.a, c.b, got, c.want)
		}
	}
}

// A run is of no interest to figures of other runs.
func TestAgainstOfOneRun(t *testing.T) {
	ds := swept()
	ds.Runs = ds.Runs[len(ds.Runs)-1:] // loss 0.1
	a := newView(ds, false).against()
	for _, l := range a.Lines {
		if l.Group != "loss" || l.Where == "loss 0" {
			t.Errorf("line %+v", l)
		}
	}
	if l := a.Lines[0]; l.Kind != "shape" && l.Outcome != OutcomeNone {
		t.Errorf("line %+v", l)
	}
}
