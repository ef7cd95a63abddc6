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
	a, b := varianceOfMean(reference), varianceOfMean(value)
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

// UnpairedRatio compares the means of two independent samples by their ratio.
type UnpairedRatio struct {
	Ratio    float64  // of the means: the second sample's over the first's
	Interval Interval // of the ratio
}

// WelchRatio is the ratio of two means with Fieller's interval (J. R. Stat. Soc. B 16, 1954)
// for unequal variances, with the degrees of freedom of Welch and Satterthwaite at the ratio
// that was found. Both means vary in it. The interval is NaN where a
// sample has fewer than two values, and where the trials do not tell the first mean from 0:
// no bounded set of ratios is then an interval. Where neither sample has any spread, it is
// the ratio itself. The ratio is NaN where the first mean is not positive.
func WelchRatio(reference, value []float64, level float64) UnpairedRatio {
	out := UnpairedRatio{Ratio: math.NaN(), Interval: undefined}
	ma, mb := Mean(reference), Mean(value)
	if !(ma > 0) || math.IsNaN(mb) {
		return out
	}
	r := mb / ma
	out.Ratio = r
	if len(reference) < 2 || len(value) < 2 || !isLevel(level) {
		return out
	}
	va, vb := varianceOfMean(reference), varianceOfMean(value)
	if va+vb == 0 {
		out.Interval = Interval{r, r}
		return out
	}
	va2, sum := r*r*va, vb+r*r*va
	if sum == 0 { // the values are all 0, and so is the ratio, whatever the reference is
		out.Interval = Interval{0, 0}
		return out
	}
	degrees := sum * sum / (va2*va2/float64(len(reference)-1) + vb*vb/float64(len(value)-1))
	t := tQuantile(level, degrees)
	// The ratios x with (mb − x·ma)² ≤ t²·(vb + x²·va), divided by ma²: (r − x)² ≤ b + x²·a.
	a, b := t*t*va/(ma*ma), t*t*vb/(ma*ma)
	if a >= 1 {
		return out
	}
	root := math.Sqrt(max(0, r*r*a+b-a*b))
	out.Interval = Interval{(r - root) / (1 - a), (r + root) / (1 - a)}
	return out
}

func varianceOfMean(xs []float64) float64 {
	sd := StdDev(xs)
	return sd * sd / float64(len(xs))
}
