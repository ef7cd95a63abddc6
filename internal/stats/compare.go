package stats

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

// Pair is one iteration's values of the reference and of what is held against it.
type Pair struct {
	Reference float64
	Value     float64
}

// PairUp joins two treatments' values by iteration, in its order. Iterations
// that only one of them has are left out: their other half is not known.
func PairUp(reference, value map[int]float64) []Pair {
	var iterations []int
	for i := range reference {
		if _, both := value[i]; both {
			iterations = append(iterations, i)
		}
	}
	slices.Sort(iterations)
	pairs := make([]Pair, len(iterations))
	for k, i := range iterations {
		pairs[k] = Pair{reference[i], value[i]}
	}
	return pairs
}

// Comparison is one treatment against the reference, paired by iteration.
type Comparison struct {
	Pairs int
	// Difference is the mean of value − reference, with Student's interval and the P
	// of the test that it inverts.
	Difference         float64
	DifferenceInterval Interval
	DifferenceP        float64
	// Ratio is value / reference by the estimate of Hodges and Lehmann, of the
	// logarithms, with the interval and the P of the signed-rank test that it inverts
	// ([Shift]). NaN where a value is not positive.
	Ratio         float64
	RatioInterval Interval
	RatioP        float64
	RatioExact    bool
	Wilcoxon      SignedRank // of the logarithms of the ratios: its rank sums
}

// Compare holds a treatment against the reference.
func Compare(pairs []Pair, level float64) Comparison {
	differences, logs := make([]float64, len(pairs)), logRatios(pairs)
	for i, p := range pairs {
		differences[i] = p.Value - p.Reference
	}
	shift := SignedRankShift(logs, level)
	return Comparison{
		Pairs:              len(pairs),
		Difference:         Mean(differences),
		DifferenceInterval: MeanT(differences, level),
		DifferenceP:        PairedT(differences),
		Ratio:              math.Exp(shift.Estimate),
		RatioInterval:      Interval{math.Exp(shift.Interval.Low), math.Exp(shift.Interval.High)},
		RatioP:             shift.P,
		RatioExact:         shift.Exact,
		Wilcoxon:           Wilcoxon(logs),
	}
}

// SignedRank is the outcome of a Wilcoxon signed-rank test, two-sided.
type SignedRank struct {
	N      int     // differences other than zero
	Zeros  int     // left out
	WPlus  float64 // sum of the ranks of positive differences
	WMinus float64
	P      float64 // NaN where no difference is left
	Exact  bool    // P is from the permutation distribution, not the normal one
	// RankBiserial is the matched-pairs rank-biserial correlation
	// (Kerby 2014): (W+ − W−)/(W+ + W−), from −1 to 1; positive where the value
	// exceeds the reference.
	RankBiserial float64
}

// Statistic is the smaller of the two rank sums, as SciPy reports it.
func (s SignedRank) Statistic() float64 { return min(s.WPlus, s.WMinus) }

// maxExact is the most differences for which P is counted out; SciPy draws the
// line at the same number.
const maxExact = 50

// Wilcoxon is the signed-rank test that differences lie evenly about zero.
// Zeros are left out (Wilcoxon's own way, SciPy's zero_method "wilcox"), ties
// share their mean rank. Up to 50 differences, P is from the exact
// distribution of the rank sum over all assignments of signs, given the ties;
// beyond, from the normal approximation with tie and continuity correction.
// SciPy agrees without ties or zeros, or up to 13 values with them; beyond, it
// falls back to the approximation where this still counts.
func Wilcoxon(differences []float64) SignedRank {
	nothing := SignedRank{WPlus: math.NaN(), WMinus: math.NaN(), P: math.NaN(), RankBiserial: math.NaN()}
	if len(differences) == 0 || hasNaN(differences) {
		return nothing
	}
	d := slices.DeleteFunc(slices.Clone(differences), func(x float64) bool { return x == 0 })
	n := len(d)
	if n == 0 {
		nothing.Zeros = len(differences)
		nothing.WPlus, nothing.WMinus = 0, 0
		return nothing
	}
	slices.SortFunc(d, func(a, b float64) int { return cmp.Compare(math.Abs(a), math.Abs(b)) })
	// Twice the rank is whole also where ties share a rank.
	twice := make([]int, n)
	ties := 0.0 // sum of t³ − t over the groups of ties
	for i := 0; i < n; {
		j := i + 1
		for j < n && math.Abs(d[j]) == math.Abs(d[i]) {
			j++
		}
		for k := i; k < j; k++ {
			twice[k] = i + 1 + j
		}
		t := float64(j - i)
		ties += t*t*t - t
		i = j
	}
	plus, total := 0, 0
	for i, x := range d {
		total += twice[i]
		if x > 0 {
			plus += twice[i]
		}
	}
	s := SignedRank{N: n, Zeros: len(differences) - n, WPlus: float64(plus) / 2, WMinus: float64(total-plus) / 2, Exact: n <= maxExact}
	s.RankBiserial = float64(2*plus-total) / float64(total)
	if s.Exact {
		s.P = exactP(twice, min(plus, total-plus))
	} else {
		nf := float64(n)
		sd := math.Sqrt((nf*(nf+1)*(2*nf+1) - ties/2) / 24)
		// Half a rank towards the middle, but not past it.
		z := max(0, math.Abs(s.WPlus-nf*(nf+1)/4)-0.5) / sd
		s.P = min(1, 2*distuv.UnitNormal.Survival(z))
	}
	return s
}

// exactP is twice the share of the 2^n assignments of signs whose doubled rank
// sum is at most w, and at most 1. The distribution is symmetric.
func exactP(twice []int, w int) float64 {
	return min(1, math.Ldexp(cumulative(twice)[w], 1-len(twice)))
}

// cumulative is, for each sum, how many assignments of signs to ranks have a sum of the
// positive ones that is at most it.
func cumulative(ranks []int) []float64 {
	out := ways(ranks)
	for i := 1; i < len(out); i++ {
		out[i] += out[i-1]
	}
	return out
}

// ways is, for each sum, how many assignments of signs to ranks have it as that of the
// positive ones.
func ways(ranks []int) []float64 {
	total := 0
	for _, r := range ranks {
		total += r
	}
	out := make([]float64, total+1)
	out[0] = 1
	reach := 0
	for _, r := range ranks {
		for s := reach; s >= 0; s-- {
			out[s+r] += out[s]
		}
		reach += r
	}
	return out
}

// Holm adjusts the P values of a family of tests so that the family errs no
// more often than one test would (Holm 1979), in the order given. NaN stays
// NaN and does not count as a member of the family.
func Holm(ps []float64) []float64 {
	out := slices.Clone(ps)
	var order []int
	for i, p := range ps {
		if !math.IsNaN(p) {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(ps[a], ps[b]) })
	floor := 0.0
	for k, i := range order {
		floor = max(floor, min(1, float64(len(order)-k)*ps[i]))
		out[i] = floor
	}
	return out
}

// MeanRatio is the ratio of two means of paired values.
type MeanRatio struct {
	Pairs int
	Ratio float64 // NaN without pairs or where the reference's mean is 0
	// Variance of the ratio by the delta method (Cochran 1977, section 2.11);
	// NaN below two pairs. Student's t with Pairs − 1 degrees goes with it.
	Variance float64
}

// RatioOfMeans is the mean value over the mean reference. Unlike a mean of
// ratios it weights iterations by how long they took, as a mean time does.
func RatioOfMeans(pairs []Pair) MeanRatio {
	var ref, val float64
	for _, p := range pairs {
		ref += p.Reference
		val += p.Value
	}
	out := MeanRatio{Pairs: len(pairs), Ratio: math.NaN(), Variance: math.NaN()}
	if len(pairs) == 0 || ref == 0 {
		return out
	}
	n := float64(len(pairs))
	out.Ratio = val / ref
	if len(pairs) < 2 {
		return out
	}
	squares := 0.0
	for _, p := range pairs {
		d := p.Value - out.Ratio*p.Reference
		squares += d * d
	}
	out.Variance = squares / (n - 1) / n / (ref / n) / (ref / n)
	return out
}
