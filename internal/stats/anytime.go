package stats

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

// Anytime is an interval of the shift of differences in the order in which they were
// measured, for readers who look whenever they like: with a probability of at least the level,
// the intervals after 1, 2, 3 and all later differences contain the shift, every one of them.
// It is wider than [SignedRankShift]'s for that. It assumes that, given the earlier
// differences and its own distance from the shift, each difference is above or below the
// shift with equal chance; so it is where differences are independent and symmetric about the
// shift, of any distribution, which may change.
//
// The interval is made of all shifts against which there is not yet enough evidence: those of
// which a bet on the signs, which is fair if the shift is the true one, has not multiplied its
// stake by 1/(1 − level) (Ville 1939; Ramdas et al. 2023). Where several intervals are left,
// it is the one around all. NaN where it would have an infinite end, as of fewer than nine
// differences at 95 %.
func Anytime(differences []float64, level float64) Interval {
	if len(differences) == 0 || !finite(differences) || !isLevel(level) {
		return undefined
	}
	// Evidence changes only at a Walsh average: there two distances change their order, or a
	// sign changes. Shifts with an even number are those averages, others are between two.
	ends := walshAverages(differences)
	refused := func(shift float64) bool { return evidence(differences, shift) >= 1/(1-level) }
	width := ends[len(ends)-1] - ends[0] + 1
	if !refused(ends[0]-width) || !refused(ends[len(ends)-1]+width) {
		return undefined
	}
	shift := func(i int) float64 { return ends[i/2]/2 + ends[(i+1)/2]/2 }
	last := 2 * (len(ends) - 1)
	// Of many shifts only some are tried; the interval then errs outwards.
	step := max(1, last/maxTried)
	low, high := 0, last
	for low <= last && refused(shift(low)) {
		low += step
	}
	for high >= 0 && refused(shift(high)) {
		high -= step
	}
	if low > last || high < 0 {
		return undefined
	}
	return Interval{ends[max(0, low-step+1)/2], ends[(min(last, high+step-1)+1)/2]}
}

const maxTried = 1 << 13

// walshAverages are the means of every two values and of each with itself, sorted.
func walshAverages(xs []float64) []float64 {
	var out []float64
	for i, a := range xs {
		for _, b := range xs[:i+1] {
			out = append(out, a/2+b/2)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// bets are the effects that the evidence is made for, in standard deviations of normal
// differences. The stake is divided over them, and for each over both directions.
var bets = []float64{0.25, 0.5, 1, 2}

// evidence is by how much a bet against a shift has multiplied its stake. On difference i it
// bets on the sign, by its distance from the shift among the first i: their rank, as a normal
// score z. The factor exp(±λz)/cosh(λz) has the mean 1 where both signs have equal chance, and
// it is the likelihood ratio for normal differences with the mean λ.
func evidence(differences []float64, shift float64) float64 {
	up, down := make([]float64, len(bets)), make([]float64, len(bets))
	for i, x := range differences {
		distance, rank := math.Abs(x-shift), 1
		for _, earlier := range differences[:i] {
			if math.Abs(earlier-shift) <= distance {
				rank++
			}
		}
		z := scoreOf(rank, i+1)
		for k, bet := range bets {
			lean, fair := bet*z, math.Log(math.Cosh(bet*z))
			switch {
			case x > shift:
				up[k], down[k] = up[k]+lean-fair, down[k]-lean-fair
			case x < shift:
				up[k], down[k] = up[k]-lean-fair, down[k]+lean-fair
			}
		}
	}
	sum := 0.0
	for k := range bets {
		sum += math.Exp(up[k]) + math.Exp(down[k])
	}
	return sum / float64(2*len(bets))
}

// scoreOf is the absolute value of a normal variable of which a share rank/(n + 1) is smaller.
func scoreOf(rank, n int) float64 {
	return distuv.UnitNormal.Quantile((1 + float64(rank)/float64(n+1)) / 2)
}
