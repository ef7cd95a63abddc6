package stats

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
)

// Description is what every table says of a sample, in the sample's unit.
type Description struct {
	N      int
	Mean   float64
	Min    float64
	Max    float64
	SD     float64 // of the sample (n−1); NaN below two values
	Median float64
}

// Describe summarises a sample.
func Describe(xs []float64) Description {
	d := Description{N: len(xs), Mean: Mean(xs), SD: StdDev(xs), Min: math.NaN(), Max: math.NaN(), Median: Percentile(xs, 50)}
	if len(xs) > 0 {
		d.Min, d.Max = slices.Min(xs), slices.Max(xs) // both spread NaN
	}
	return d
}

// Mean is the arithmetic mean; NaN for none.
func Mean(xs []float64) float64 {
	if len(xs) == 0 {
		return math.NaN()
	}
	return stat.Mean(xs, nil)
}

// StdDev is the sample standard deviation, with n−1 in the denominator; NaN
// below two values.
func StdDev(xs []float64) float64 {
	if len(xs) < 2 {
		return math.NaN()
	}
	return stat.StdDev(xs, nil)
}

// Median is the 50th [Percentile].
func Median(xs []float64) float64 { return Percentile(xs, 50) }

// Percentile is the p-th percentile, p from 0 to 100, by linear interpolation
// between the closest ranks: definition 7 of Hyndman and Fan (1996), which is
// the default of R's quantile and of numpy's percentile. NaN for an empty
// sample or a p outside its range.
func Percentile(xs []float64, p float64) float64 {
	if len(xs) == 0 || hasNaN(xs) {
		return math.NaN()
	}
	sorted := slices.Clone(xs)
	slices.Sort(sorted)
	return percentileSorted(sorted, p)
}

func percentileSorted(sorted []float64, p float64) float64 {
	if len(sorted) == 0 || math.IsNaN(p) || p < 0 || p > 100 {
		return math.NaN()
	}
	h := p / 100 * float64(len(sorted)-1)
	i := int(h)
	if i+1 == len(sorted) {
		return sorted[i]
	}
	return between(sorted[i], sorted[i+1], h-float64(i))
}

// between is the point at a fraction of the way from one rank to the next.
func between(lo, hi, fraction float64) float64 {
	if lo == hi || fraction == 0 {
		return lo // also where both are infinite
	}
	// The weighted sum cannot leave the two neighbours, nor overflow between them.
	return min(max((1-fraction)*lo+fraction*hi, lo), hi)
}

func hasNaN(xs []float64) bool { return slices.ContainsFunc(xs, math.IsNaN) }

// UsualWidth is how many spreads a value may lie from the median and be usual: the bound of
// the modified z-score of Iglewicz and Hoaglin, How to Detect and Handle Outliers (ASQC Basic
// References in Quality Control 16, 1993).
const UsualWidth = 3.5

// Usual is the range of usual values of a sample: its median ± [UsualWidth] spreads. The spread
// is the median absolute deviation over 0.6745, its value for the normal distribution with
// standard deviation 1; where more than half of the values are the same, it is the mean
// absolute deviation times 1.253314, in the same way. Not defined for a sample without two
// different values.
func Usual(xs []float64) Interval {
	median := Median(xs)
	deviations := make([]float64, len(xs))
	for i, x := range xs {
		deviations[i] = math.Abs(x - median)
	}
	spread := Median(deviations) / 0.6745
	if spread == 0 {
		spread = 1.253314 * Mean(deviations)
	}
	if !(spread > 0) { // or NaN
		return undefined
	}
	return Interval{median - UsualWidth*spread, median + UsualWidth*spread}
}
