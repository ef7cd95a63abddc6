package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// drawn is a sample of 1 to 70 values, with ties and zeros in every second one.
func drawn(rng *rand.Rand) []float64 {
	xs := make([]float64, 1+rng.IntN(20))
	if rng.IntN(10) == 0 {
		xs = make([]float64, 51+rng.IntN(20))
	}
	centre, coarse := rng.NormFloat64(), rng.IntN(2) == 0
	for i := range xs {
		xs[i] = centre + rng.NormFloat64()*math.Exp(rng.NormFloat64())
		if coarse {
			xs[i] = math.Round(xs[i])
		}
	}
	return xs
}

// What stands beside each other never contradicts: P is below 5 % exactly where the
// interval of 95 % does not contain "no difference", and so at every other level.
func TestTestAndIntervalAgree(t *testing.T) {
	rng := rand.New(rand.NewPCG(16, 4))
	refused := 0
	for range 3000 {
		xs := drawn(rng)
		pairs := make([]Pair, len(xs))
		for i, x := range xs {
			pairs[i] = Pair{10, 10 * math.Exp(x/4)}
		}
		for _, level := range []float64{0.8, 0.95, 0.99} {
			s := SignedRankShift(xs, level)
			if contains := !s.Interval.Defined() || s.Interval.Low <= 0 && s.Interval.High >= 0; contains != (s.P > 1-level) {
				t.Fatalf("%v: P %v, interval %v at %v", xs, s.P, s.Interval, level)
			}
			if s.Interval.Defined() && !(s.Interval.Low <= s.Estimate && s.Estimate <= s.Interval.High) {
				t.Fatalf("%v: estimate %v outside %v", xs, s.Estimate, s.Interval)
			}
			c := Compare(pairs, level)
			if contains := !c.RatioInterval.Defined() || c.RatioInterval.Low <= 1 && c.RatioInterval.High >= 1; contains != (c.RatioP > 1-level) {
				t.Fatalf("%v: P %v, ratio %v", xs, c.RatioP, c.RatioInterval)
			}
			if len(xs) > 1 {
				if contains := c.DifferenceInterval.Low <= 0 && c.DifferenceInterval.High >= 0; contains != (c.DifferenceP > 1-level) {
					t.Fatalf("%v: P %v, difference %v", xs, c.DifferenceP, c.DifferenceInterval)
				}
			}
			if s.P < 1-level {
				refused++
			}
		}
	}
	if refused < 500 {
		t.Errorf("only %d tests refused: the property saw too little", refused)
	}
}

// The interval is what the test does not refuse: of every other shift, too.
func TestShiftIntervalInvertsTheTest(t *testing.T) {
	rng := rand.New(rand.NewPCG(16, 5))
	for range 300 {
		xs := drawn(rng)
		s := SignedRankShift(xs, 0.95)
		for range 30 {
			by := rng.NormFloat64() * 3
			moved := slices.Clone(xs)
			for i := range moved {
				moved[i] -= by
			}
			inside := !s.Interval.Defined() || by >= s.Interval.Low && by <= s.Interval.High
			if p := SignedRankShift(moved, 0.95).P; inside != (p > 0.05) {
				t.Fatalf("%v moved by %v: P %v, interval %v", xs, by, p, s.Interval)
			}
		}
	}
}

func TestShiftIsWilcoxonsWithoutTies(t *testing.T) {
	rng := rand.New(rand.NewPCG(16, 6))
	for range 300 {
		xs := make([]float64, 1+rng.IntN(60))
		for i := range xs {
			xs[i] = 0.5 + rng.NormFloat64()
		}
		near(t, "P", SignedRankShift(xs, 0.95).P, Wilcoxon(xs).P)
	}
	// With ties and zeros it errs towards no difference.
	for _, xs := range [][]float64{{0, 0, 0}, {1, -1, 2, 0}, {3, 3, 3, 3, 3, 3, 0}} {
		if p, w := SignedRankShift(xs, 0.95).P, Wilcoxon(xs).P; !(p >= w || math.IsNaN(w) && p == 1) {
			t.Errorf("%v: P %v, Wilcoxon %v", xs, p, w)
		}
	}
}

func TestWalshAverages(t *testing.T) {
	rng := rand.New(rand.NewPCG(16, 7))
	for range 100 {
		xs := drawn(rng)
		slices.Sort(xs)
		var all []float64
		for i := range xs {
			for j := i; j < len(xs); j++ {
				all = append(all, xs[i]/2+xs[j]/2)
			}
		}
		slices.Sort(all)
		for k, want := range all {
			if got := walsh(xs, k+1); got != want {
				t.Fatalf("%v: average %d is %v, expected %v", xs, k+1, got, want)
			}
		}
	}
}

// R's wilcox.test(c(1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30), c(0.878, 0.647,
// 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29), paired = TRUE, conf.int = TRUE), its own
// example with both alternatives, after Hollander and Wolfe (1973), page 29.
func TestShiftAsHollanderAndWolfe(t *testing.T) {
	x := []float64{1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30}
	y := []float64{0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29}
	d := make([]float64, len(x))
	for i := range x {
		d[i] = x[i] - y[i]
	}
	s := SignedRankShift(d, 0.95)
	near(t, "P", s.P, 0.0390625)
	nearBy(t, "estimate", s.Estimate, 0.46, 1e-9)
	nearBy(t, "low", s.Interval.Low, 0.01, 1e-9)
	nearBy(t, "high", s.Interval.High, 0.786, 1e-9)
}

func TestShiftOfFewHasNoInterval(t *testing.T) {
	if s := SignedRankShift([]float64{1, 2, 3, 4, 5}, 0.95); s.Interval.Defined() || s.P != 0.0625 || s.Estimate != 3 {
		t.Errorf("five differences: %+v", s)
	}
	if s := SignedRankShift(nil, 0.95); s.Interval.Defined() || !math.IsNaN(s.P) || !math.IsNaN(s.Estimate) {
		t.Errorf("none: %+v", s)
	}
}
