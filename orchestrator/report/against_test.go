package report

import (
	"math"
	"testing"
)

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		deviation *float64
		equal     bool
		want      Outcome
	}{
		{new(0.0), true, Within10}, {new(-10.0), false, Within10}, {new(10.1), false, Within25}, {new(-25.0), false, Within25},
		{new(25.1), false, Beyond25}, {nil, false, Beyond25}, {nil, true, Within10},
	} {
		if got := distance(c.deviation, c.equal); got != c.want {
			t.Errorf("%v, %v: %s, expected %s", deref(c.deviation), c.equal, got, c.want)
		}
	}
}

// A mean over runs counts each alike, and its interval is between theirs.
func TestTogether(t *testing.T) {
	a, b := estimateOf([]float64{1, 3}), estimateOf([]float64{10, 10, 10, 10})
	e := together([]Estimate{a, b})
	if e.Mean != 6 || e.N != 6 || math.Abs(e.variance-0.25) > 1e-12 || e.degrees != 1 {
		t.Errorf("together %+v", e)
	}
	if e := together([]Estimate{estimateOf([]float64{2, 2}), estimateOf([]float64{4, 4})}); e.Interval() == nil || e.Half() != 0 {
		t.Errorf("without spread %+v", e)
	}
	if e := together([]Estimate{estimateOf([]float64{2}), estimateOf([]float64{4, 5})}); e.Mean != 3.25 || e.Interval() != nil {
		t.Errorf("with a run of one trial %+v", e)
	}
	if e := together(nil); e.N != 0 || Rounded(e.Mean) != nil {
		t.Errorf("of nothing %+v", e)
	}
}

func TestBelow(t *testing.T) {
	exact := func(m float64) Estimate { return Estimate{Mean: m, variance: 0, degrees: 3} }
	wide := Estimate{Mean: 2, variance: 0.01, degrees: 3}
	for _, c := range []struct {
		a, b Estimate
		want Outcome
	}{
		{exact(1), exact(2), Holds}, {exact(2), exact(1), DoesNotHold}, {exact(2.2), wide, HoldsWithin}, {exact(2.4), wide, DoesNotHold}, {exact(1), exact(1), HoldsWithin},
	} {
		if got := below(c.a, c.b); got != c.want {
			t.Errorf("%v below %v: %s, expected %s", c.a, c.b, got, c.want)
		}
	}
}
