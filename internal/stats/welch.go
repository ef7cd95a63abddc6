package stats

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// Unpaired compares the means of two independent samples.
type Unpaired struct {
	Difference float64  // of the means: the second sample's minus the first's
	Interval   Interval // of the difference
	P          float64  // two-sided, of the test that Interval inverts
}

// Welch is Welch's comparison of two means (Biometrika 34, 1947), with the degrees of
// freedom of Welch and Satterthwaite: neither equal variances nor equal numbers of
// values are assumed. Interval and P are NaN where a sample has fewer than two values.
// Where neither has any spread, Interval is the difference itself, and P is 0, or 1
// where there is no difference.
func Welch(reference, value []float64, level float64) Unpaired {
	out := Unpaired{Difference: Mean(value) - Mean(reference), Interval: undefined, P: math.NaN()}
	if len(reference) < 2 || len(value) < 2 || !isLevel(level) {
		return out
	}
	variance := func(xs []float64) float64 { sd := StdDev(xs); return sd * sd / float64(len(xs)) }
	a, b := variance(reference), variance(value)
	if a+b == 0 {
		out.Interval, out.P = Interval{out.Difference, out.Difference}, 0
		if out.Difference == 0 {
			out.P = 1
		}
		return out
	}
	degrees := (a + b) * (a + b) / (a*a/float64(len(reference)-1) + b*b/float64(len(value)-1))
	out.Interval = OfMean(out.Difference, a+b, degrees, level)
	out.P = 2 * distuv.StudentsT{Mu: 0, Sigma: 1, Nu: degrees}.Survival(math.Abs(out.Difference)/math.Sqrt(a+b))
	return out
}
