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
