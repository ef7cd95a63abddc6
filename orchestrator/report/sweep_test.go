package report

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"linktrial/orchestrator/plan"
)

func TestQuantity(t *testing.T) {
	for s, want := range map[string]float64{
		"0.05": 0.05, "5 %": 5, "16 kbit/s": 16e3, "1 Mbit/s": 1e6, "3 KiB": 3072, "834ms": 0.834, "10 m": 10, "-3": -3, " 7 ": 7, "1e3": 1000,
	} {
		if got, ok := quantity(s); !ok || math.Abs(got-want) > 1e-9*math.Abs(want) {
			t.Errorf("%q: %v, %v, expected %v", s, got, ok, want)
		}
	}
	for _, s := range []string{"", "long", "0.001, 0.01", "NaN", "Inf", "%", "fifth 5", "1e999"} {
		if got, ok := quantity(s); ok {
			t.Errorf("%q: %v", s, got)
		}
	}
}

func FuzzQuantity(f *testing.F) {
	for _, s := range []string{"0.05", "5 %", "16 kbit/s", "3 KiB", "834ms", "1h", "10 m", "Inf", "NaN", "long", "1e400"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if x, ok := quantity(s); ok && (math.IsNaN(x) || math.IsInf(x, 0)) {
			t.Errorf("%q: %v", s, x)
		}
	})
}

// The charts of the campaign with two groups.
func TestCharts(t *testing.T) {
	charts := newView(swept(), false).charts()
	var got []string
	for _, c := range charts {
		var labels []string
		for _, x := range c.xs {
			labels = append(labels, x.label)
		}
		got = append(got, fmt.Sprintf("%s|%s|%s|%s|%v", c.group, c.metric, conditionText(c.fixed), strings.Join(labels, "/"), c.averaged))
	}
	want := []string{
		"test-1|normalised-throughput|bandwidth 16 kbit/s|3000 B/100000 B/1000000 B|[channel]",
		"test-1|normalised-throughput|bandwidth 1 Mbit/s|3000 B/100000 B/1000000 B|[channel]",
		"test-1|gain-percent|bandwidth 16 kbit/s|3000 B/100000 B/1000000 B|[channel]",
		"test-1|gain-percent|bandwidth 1 Mbit/s|3000 B/100000 B/1000000 B|[channel]",
		"loss|throughput-mbit-per-s||0/0.05/0.1|[]",
		"loss|flow-throughput-mbit-per-s||0/0.05/0.1|[]",
	}
	if !slices.Equal(got, want) {
		t.Fatalf("charts\n%s\nexpected\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	c := charts[1]
	line := func(name string) *curve {
		i := slices.IndexFunc(c.lines, func(l curve) bool { return l.treatment == name })
		if i < 0 {
			t.Fatalf("no line of %s", name)
		}
		return &c.lines[i]
	}
	if p := line("radio-newrto").points[2]; p.n != 8 || p.published == nil || *p.published.Value != 0.61 {
		t.Errorf("point %+v", p)
	}
	if l := line("lt-tcp"); l.missing == "" || l.points[2].known || l.points[2].published == nil {
		t.Errorf("a missing treatment: %+v", l)
	}
	if line(plan.Ideal).points[0].published != nil {
		t.Error("a published figure at another size")
	}

	// Without published figures every axis but the longest splits.
	ds := swept()
	ds.Figures = nil
	charts = newView(ds, false).charts()
	if len(charts) != 4+1 || charts[0].metric != plan.MetricKBps || charts[0].axis != "size" || conditionText(charts[0].fixed) != "bandwidth 16 kbit/s, channel long" {
		t.Errorf("%d charts, the first %+v", len(charts), charts[0])
	}
}

func TestScaleFor(t *testing.T) {
	for _, c := range []struct {
		values    []float64
		log       bool
		low, high float64
	}{
		{nil, false, 0, 1}, {[]float64{0, 0}, false, 0, 1}, {[]float64{3, 7}, false, 0, 7}, {[]float64{-40, 95}, false, -40, 100},
		{[]float64{-3, -1}, false, -3, 0}, {[]float64{0.0004, 0.06}, true, 1e-4, 0.1}, {[]float64{0, 1000}, false, 0, 1000}, {[]float64{1, 100}, true, 1, 100},
	} {
		s := scaleFor(c.values)
		if s.log != c.log || math.Abs(s.low-c.low) > 1e-9 || math.Abs(s.high-c.high) > 1e-9 || len(s.marks) < 2 || len(s.marks) > 14 {
			t.Errorf("%v: %+v", c.values, s)
		}
		for _, x := range c.values {
			if a := s.along(x); !(a >= 0 && a <= 1) {
				t.Errorf("%v lies at %v", x, a)
			}
		}
	}
}

func TestCurvesAreWellFormed(t *testing.T) {
	for name, ds := range datasets() {
		t.Run(name, func(t *testing.T) { checkSVG(t, render(t, ds, "sweep-svg")) })
	}
}
