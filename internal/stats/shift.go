package stats

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

// Shift is by how much paired values differ, judged by ranks: an estimate, its
// interval and a test that belong together. Of one level, P is below 1 − level exactly
// where the interval does not contain 0, because the interval is made of all shifts that
// the test does not refuse.
type Shift struct {
	N int
	// Estimate is that of Hodges and Lehmann (1963): the median of the Walsh averages,
	// the means of every two differences and of each with itself.
	Estimate float64
	// Interval is between two of the Walsh averages (Tukey 1949). There is none where
	// the test cannot refuse anything at the level: of fewer than six differences at 95 %.
	Interval Interval
	P        float64 // of the two-sided signed-rank test of Wilcoxon; NaN of no differences
	Exact    bool    // P is from the distribution of the rank sum, not the normal one
}

// SignedRankShift judges differences. Without ties and zeros P is that of [Wilcoxon].
// Where differences are tied or zero, P is the largest that any way of breaking the ties
// gives: the distribution stays that without ties, which an interval needs, and errs
// towards no difference.
func SignedRankShift(differences []float64, level float64) Shift {
	out := Shift{N: len(differences), Estimate: math.NaN(), Interval: undefined, P: math.NaN()}
	if len(differences) == 0 || !finite(differences) || !isLevel(level) {
		return out
	}
	d := slices.Clone(differences)
	slices.Sort(d)
	n := len(d)
	all := n * (n + 1) / 2
	out.Exact = n <= maxExact
	p := rankSumP(n)
	out.Estimate = (walsh(d, (all+1)/2) + walsh(d, all/2+1)) / 2
	out.P = p(min(walshUpTo(d, 0), all-walshUpTo(d, math.Nextafter(0, -1))))
	if refused := refusedSum(n, p, level); refused >= 0 {
		out.Interval = Interval{walsh(d, refused+1), walsh(d, all-refused)}
	}
	return out
}

// refusedSum is the largest smaller rank sum of n differences that the test refuses at a
// level, -1 where it refuses none. p is of [rankSumP], which rises with the sum.
func refusedSum(n int, p func(sum int) float64, level float64) int {
	refused := -1
	for low, high := 0, n*(n+1)/4; low <= high; {
		if mid := (low + high) / 2; p(mid) <= 1-level {
			refused, low = mid, mid+1
		} else {
			high = mid - 1
		}
	}
	return refused
}

// rankSumP gives the two-sided P of the smaller rank sum of n differences without ties.
func rankSumP(n int) func(sum int) float64 {
	if n > maxExact {
		nf := float64(n)
		mean, sd := nf*(nf+1)/4, math.Sqrt(nf*(nf+1)*(2*nf+1)/24)
		return func(sum int) float64 {
			return min(1, 2*distuv.UnitNormal.Survival(max(0, mean-float64(sum)-0.5)/sd))
		}
	}
	ranks := make([]int, n)
	for i := range ranks {
		ranks[i] = i + 1
	}
	below := cumulative(ranks)
	return func(sum int) float64 { return min(1, math.Ldexp(below[min(sum, len(below)-1)], 1-n)) }
}

// walshUpTo counts the Walsh averages of sorted values that are at most a bound. The
// average of two values rises with either, so that one pass is enough.
func walshUpTo(sorted []float64, bound float64) (count int) {
	j := len(sorted) - 1
	for i := range sorted {
		for j >= i && sorted[i]/2+sorted[j]/2 > bound {
			j--
		}
		if j < i {
			break
		}
		count += j - i + 1
	}
	return count
}

// walsh is the k-th smallest Walsh average, k from 1: the least number that has k
// of them up to it. There are as many as n², which are never all written down.
func walsh(sorted []float64, k int) float64 {
	low, high := place(sorted[0]), place(sorted[len(sorted)-1])
	for low < high {
		mid := low&high + (low^high)>>1
		if walshUpTo(sorted, number(mid)) >= k {
			high = mid
		} else {
			low = mid + 1
		}
	}
	return number(low)
}

// place numbers the floating-point numbers in their order.
func place(x float64) int64 {
	if b := int64(math.Float64bits(x)); b >= 0 {
		return b
	} else {
		return math.MinInt64 - b
	}
}

func number(place int64) float64 {
	if place < 0 {
		place = math.MinInt64 - place
	}
	return math.Float64frombits(uint64(place))
}

// PairedT is the two-sided P of Student's test that the mean of differences is 0, the
// test that [MeanT] inverts. NaN where that has no interval; 0 where all are one and the
// same difference, and 1 where that is none.
func PairedT(differences []float64) float64 {
	n := float64(len(differences))
	mean, sd := Mean(differences), StdDev(differences)
	switch {
	case math.IsNaN(sd):
		return math.NaN()
	case mean == 0:
		return 1
	case sd == 0:
		return 0
	}
	t := math.Abs(mean) / (sd / math.Sqrt(n))
	return 2 * distuv.StudentsT{Mu: 0, Sigma: 1, Nu: n - 1}.Survival(t)
}
