package figure

import (
	"math"
	"testing"

	"linktrial/orchestrator/report/reporttest"
)

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
	for name, ds := range reporttest.Datasets() {
		t.Run(name, func(t *testing.T) { checkSVG(t, drawn(t, Curves, ds)) })
	}
}
