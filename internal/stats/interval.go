package stats

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"sync"

	"gonum.org/v1/gonum/stat/distuv"
)

// Interval is a confidence interval; both ends are NaN where there is none.
type Interval struct {
	Low  float64
	High float64
}

// Defined reports whether there is an interval.
func (i Interval) Defined() bool { return !math.IsNaN(i.Low) && !math.IsNaN(i.High) }

var undefined = Interval{math.NaN(), math.NaN()}

func isLevel(level float64) bool { return level > 0 && level < 1 }

// MeanT is Student's confidence interval of the mean, of the given level
// (0.95). NaN below two values; a sample without spread gives its one value.
func MeanT(xs []float64, level float64) Interval {
	n := float64(len(xs))
	if len(xs) < 2 || !isLevel(level) {
		return undefined
	}
	m, half := Mean(xs), tQuantile(level, n-1)*StdDev(xs)/math.Sqrt(n)
	return Interval{m - half, m + half}
}

// MeanInterval is [MeanT], which of values that are never negative ends at 0: a mean
// below 0 is impossible, and without the negative part the interval contains the true mean as
// often as with it. Every interval of a mean that people see is this one.
func MeanInterval(xs []float64, level float64) Interval {
	i := MeanT(xs, level)
	if len(xs) > 0 && slices.Min(xs) >= 0 {
		i.Low = max(0, i.Low)
	}
	return i
}

// OfMean is Student's confidence interval of a mean whose own variance is
// known with so many degrees of freedom. NaN where they are not positive or
// anything is NaN.
func OfMean(mean, variance, degrees, level float64) Interval {
	if !(degrees > 0) || !(variance >= 0) || math.IsNaN(mean) || !isLevel(level) {
		return undefined
	}
	half := tQuantile(level, degrees) * math.Sqrt(variance)
	return Interval{mean - half, mean + half}
}

// tQuantile is the two-sided critical value of Student's t. Those of whole
// degrees are kept: a report of a sweep asks for the same few thousands of times,
// and they took more than all else of it.
func tQuantile(level, degrees float64) float64 {
	key := [2]float64{level, degrees}
	if q, ok := quantiles.Load(key); ok {
		return q.(float64)
	}
	q := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: degrees}.Quantile((1 + level) / 2)
	if level == 0.95 && degrees == math.Trunc(degrees) && degrees <= keptQuantiles {
		quantiles.Store(key, q)
	}
	return q
}

// keptQuantiles bounds how many are kept.
const keptQuantiles = 10_000

var quantiles sync.Map // critical values by level and degrees of freedom

// DefaultResamples is how often a bootstrap draws where nothing else is said.
const DefaultResamples = 10_000

// maxCounted is the most values of which all resamples are counted out: seven
// have 1716 different ones.
const maxCounted = 7

// Bootstrap says how to resample. The same sample, seed and stream give the
// same interval.
type Bootstrap struct {
	Resamples int // 0: DefaultResamples, or every one there is of up to seven values
	Seed      uint64
	Stream    uint64 // distinguishes samples that share a seed
}

// Mean is the bias-corrected and accelerated (BCa) bootstrap confidence
// interval of the mean (Efron 1987): resamples of the whole sample with
// replacement, acceleration from the jackknife. NaN below two values; a
// sample without spread gives its one value. With very few values it is too
// narrow, as every bootstrap is; [MeanT] is given beside it for that.
func (b Bootstrap) Mean(xs []float64, level float64) Interval {
	if len(xs) < 2 || !isLevel(level) || !finite(xs) {
		return undefined
	}
	if slices.Min(xs) == slices.Max(xs) {
		return Interval{xs[0], xs[0]}
	}
	if b.Resamples <= 0 && len(xs) <= maxCounted {
		return countedBootstrap(xs, level)
	}
	if b.Resamples <= 0 {
		b.Resamples = DefaultResamples
	}
	rng := rand.New(rand.NewPCG(b.Seed, b.Stream))
	means := make([]float64, b.Resamples)
	count := make([]int, len(xs))
	for r := range means {
		clear(count)
		for range xs {
			count[rng.IntN(len(xs))]++
		}
		means[r] = countedMean(xs, count)
	}
	for i := range count {
		count[i] = 1
	}
	return bca(xs, countedMean(xs, count), means, level)
}

// weighted is a mean and the probability of drawing it.
type weighted struct{ mean, share float64 }

// countedBootstrap is the interval from the distribution of all resamples,
// each multiset with its multinomial probability: what drawing approaches.
func countedBootstrap(xs []float64, level float64) Interval {
	n := len(xs)
	factorial := func(k int) float64 { return math.Gamma(float64(k + 1)) }
	all := factorial(n) / math.Pow(float64(n), float64(n))
	var means []weighted
	count := make([]int, n)
	var fill func(i, left int, share float64)
	fill = func(i, left int, share float64) {
		if i == n-1 {
			count[i] = left
			means = append(means, weighted{countedMean(xs, count), share / factorial(left)})
			return
		}
		for k := range left + 1 {
			count[i] = k
			fill(i+1, left-k, share/factorial(k))
		}
	}
	fill(0, n, all)
	slices.SortFunc(means, func(a, b weighted) int { return cmp.Compare(a.mean, b.mean) })
	for i := range count {
		count[i] = 1
	}
	observed, below := countedMean(xs, count), 0.0
	for _, m := range means {
		if m.mean < observed {
			below += m.share
		} else if m.mean == observed {
			below += m.share / 2
		}
	}
	quantile := func(p float64) float64 {
		sum := 0.0
		for _, m := range means {
			if sum += m.share; sum >= p {
				return m.mean
			}
		}
		return means[len(means)-1].mean
	}
	lo, hi := bcaLevels(xs, below, level)
	return Interval{quantile(lo), quantile(hi)}
}

// bcaLevels are the two percentiles, as shares, that the correction for bias
// and acceleration takes; share is that of the resamples below the observed mean.
func bcaLevels(xs []float64, share, level float64) (lo, hi float64) {
	lo, hi = (1-level)/2, (1+level)/2
	if share > 0 && share < 1 {
		z0, a := distuv.UnitNormal.Quantile(share), acceleration(xs)
		lo, hi = corrected(lo, z0, a), corrected(hi, z0, a)
	} // else the observed mean is outside all resamples: the plain percentiles remain
	return lo, hi
}

// countedMean sums in the order of the sample, so that resamples with the same
// members have the same mean to the last bit, and ties with the observed mean
// are seen as ties.
func countedMean(xs []float64, count []int) float64 {
	sum := 0.0
	for i, c := range count {
		sum += float64(c) * xs[i]
	}
	return sum / float64(len(xs))
}

// bca takes the means of the resamples and changes their order. Half of the
// ties with the observed mean count as below it.
func bca(xs []float64, observed float64, means []float64, level float64) Interval {
	twiceBelow := 0
	for _, m := range means {
		if m < observed {
			twiceBelow += 2
		} else if m == observed {
			twiceBelow++
		}
	}
	lo, hi := bcaLevels(xs, float64(twiceBelow)/2/float64(len(means)), level)
	return Interval{percentileSelect(means, 100*lo), percentileSelect(means, 100*hi)}
}

// percentileSelect is [Percentile] of values that it may put into another
// order: two percentiles of ten thousand resamples need no sorting.
func percentileSelect(xs []float64, p float64) float64 {
	if len(xs) == 0 || math.IsNaN(p) || p < 0 || p > 100 {
		return math.NaN()
	}
	h := p / 100 * float64(len(xs)-1)
	i := int(h)
	selectNth(xs, i)
	if i+1 == len(xs) {
		return xs[i]
	}
	return between(xs[i], slices.Min(xs[i+1:]), h-float64(i))
}

// selectNth moves values about until xs[n] is what sorting would put there,
// with none larger before it and none smaller after it (Hoare's FIND).
func selectNth(xs []float64, n int) {
	lo, hi := 0, len(xs)-1
	for lo < hi {
		pivot := xs[lo+(hi-lo)/2]
		i, j := lo, hi
		for i <= j {
			for xs[i] < pivot {
				i++
			}
			for pivot < xs[j] {
				j--
			}
			if i <= j {
				xs[i], xs[j] = xs[j], xs[i]
				i++
				j--
			}
		}
		switch {
		case n <= j:
			hi = j
		case n >= i:
			lo = i
		default:
			return
		}
	}
}

func corrected(p, z0, a float64) float64 {
	z := z0 + distuv.UnitNormal.Quantile(p)
	return distuv.UnitNormal.CDF(z0 + z/(1-a*z))
}

// acceleration is a sixth of the skewness of the jackknife's means.
func acceleration(xs []float64) float64 {
	// Leaving x out moves the mean by (mean − x)/(n−1); the factor n−1 of the
	// jackknife cancels it, so the influence of x is x − mean.
	m := Mean(xs)
	var squares, cubes float64
	for _, x := range xs {
		d := x - m
		squares += d * d
		cubes += d * d * d
	}
	if squares == 0 {
		return 0
	}
	return cubes / (6 * math.Pow(squares, 1.5))
}

// Wilson is the score confidence interval (Wilson 1927) of the share k of n,
// without continuity correction. NaN for n < 1 or k outside 0…n.
func Wilson(k, n int, level float64) Interval {
	if n < 1 || k < 0 || k > n || !isLevel(level) {
		return undefined
	}
	z := distuv.UnitNormal.Quantile((1 + level) / 2)
	p, nf := float64(k)/float64(n), float64(n)
	centre := p + z*z/(2*nf)
	half := z * math.Sqrt(p*(1-p)/nf+z*z/(4*nf*nf))
	scale := 1 + z*z/nf
	i := Interval{max(0, (centre-half)/scale), min(1, (centre+half)/scale)}
	// Rounding must not leave an observed 0 or 1 outside its own interval.
	if k == 0 {
		i.Low = 0
	}
	if k == n {
		i.High = 1
	}
	return i
}

// maxIterations bounds [Iterations]: beyond it no field trial goes on.
const maxIterations = 1_000_000

// Iterations is the smallest number of iterations in all (not of further ones)
// with which Student's interval of the mean would reach at most relative·|mean|
// to each side, were mean and standard deviation to stay as in the sample. It
// is false where that cannot be said (below two values, mean 0) or where the
// number passes a million.
func Iterations(xs []float64, level, relative float64) (int, bool) {
	m, sd := math.Abs(Mean(xs)), StdDev(xs)
	if !isLevel(level) || !(relative > 0) || !(m > 0) || math.IsInf(m, 0) || math.IsNaN(sd) || math.IsInf(sd, 0) {
		return 0, false
	}
	return untilWithin(sd, level, relative*m)
}

// untilWithin is the smallest number of values of that standard deviation with which
// the half-width of Student's interval is at most so much; false where there are more
// than a million.
func untilWithin(sd, level, half float64) (int, bool) {
	enough := func(n int) bool {
		return tQuantile(level, float64(n-1))*sd/math.Sqrt(float64(n)) <= half
	}
	lo, hi := 2, 2
	for !enough(hi) {
		if lo, hi = hi+1, 2*hi; hi > maxIterations {
			return 0, false
		}
	}
	for lo < hi { // the half-width falls with n
		if mid := (lo + hi) / 2; enough(mid) {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	return lo, true
}

func finite(xs []float64) bool {
	return !slices.ContainsFunc(xs, func(x float64) bool { return math.IsNaN(x) || math.IsInf(x, 0) })
}
