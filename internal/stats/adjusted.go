package stats

import (
	"math"
	"math/rand/v2"
	"slices"
)

// Adjusted is the median-unbiased estimate of the ratio after the looks that
// [Sequential.Evaluate] finds: the ratio at which a campaign would end as far up as
// this one did with a chance of one half. The estimate of Hodges and Lehmann errs away from 1
// after an early stop, because a campaign stops early where chance helps the difference.
//
// Campaigns are ordered by stages (Tsiatis, Rosner and Mehta 1984): furthest up are those
// that stopped at the first look with the value above the reference, then those of the second,
// and so on; then those without a stop; then those that stopped with the value below it, those
// of the first look last. A stop at the last look of the rule is one stage with no stop. Within
// a stage the order is that of the estimate of Hodges and Lehmann. What would have
// happened at another ratio is drawn by sign flips of the logarithms about it, the same draws
// on every machine, with the boundaries as they were. The result is within the last look's
// interval, where it has one. NaN without a look or pairs.
func (s Sequential) Adjusted(blocks []Block, completed int) (float64, error) {
	looks, logs, err := s.evaluate(blocks, completed)
	if err != nil || len(logs) == 0 {
		return math.NaN(), err
	}
	return math.Exp(s.medianUnbiased(logs, looks, adjustingDraws)), nil
}

// adjustingDraws is how many campaigns are drawn for each ratio that is tried: the chance of
// one half is then met to 1.6 %.
const adjustingDraws = 1000

func (s Sequential) medianUnbiased(logs []float64, looks []Look, draws int) float64 {
	last := looks[len(looks)-1]
	within := Interval{slices.Min(logs), slices.Max(logs)}
	if last.Interval.Defined() {
		within = Interval{math.Log(last.Interval.Low), math.Log(last.Interval.High)}
	}
	estimate, stages := math.Log(last.Ratio), looks
	if len(looks) == len(s.Looks) { // all ends at the last look are one stage
		stages = looks[:len(looks)-1]
	}
	stage, signs := stageOf(logs, stages), flipsOf(len(logs), draws)
	share := func(shift float64) float64 { return furtherUp(logs, stages, stage, estimate, shift, signs) }
	// Between two Walsh averages the share stays the same: the middle of where it is one half.
	from := firstOf(within, func(shift float64) bool { return share(shift) >= 0.5 })
	to := firstOf(within, func(shift float64) bool { return share(shift) > 0.5 })
	return from/2 + to/2
}

// firstOf is where something begins to be true, to less than a thousandth of a range.
func firstOf(within Interval, isTrue func(float64) bool) float64 {
	for range 12 {
		if middle := within.Low/2 + within.High/2; isTrue(middle) {
			within.High = middle
		} else {
			within.Low = middle
		}
	}
	return within.Low/2 + within.High/2
}

// flipsOf are assignments of signs, each with its opposite, so that what is estimated has no
// direction of its own.
func flipsOf(n, draws int) [][]uint64 {
	source := rand.NewPCG(35, 1)
	words := (n + 63) / 64
	var out [][]uint64
	for range draws / 2 {
		a, b := make([]uint64, words), make([]uint64, words)
		for i := range a {
			a[i] = source.Uint64()
			b[i] = ^a[i]
		}
		out = append(out, a, b)
	}
	return out
}

// stageOf is the place of a campaign's end in the order of stages: positive where it stopped
// with the value above the reference, the more the earlier; negative where with the value
// below; 0 without a stop.
func stageOf(logs []float64, looks []Look) int {
	for k, look := range looks {
		if look.Boundary < 0 {
			continue
		}
		switch plus := positiveSum(logs[:look.Pairs]); {
		case plus <= look.Boundary:
			return k - len(looks)
		case look.Pairs*(look.Pairs+1)/2-plus <= look.Boundary:
			return len(looks) - k
		}
	}
	return 0
}

// positiveSum is the rank sum of the positive differences.
func positiveSum(differences []float64) (sum int) {
	for i, r := range ranksOf(differences) {
		if differences[i] > 0 {
			sum += r
		}
	}
	return sum
}

// estimateAbove is positive where Hodges and Lehmann's estimate is above a number, and
// negative where it is below: by how many more Walsh averages are above the number than
// below. The number is such an average of one campaign, and flips leave some of it, but for
// rounding, where they were: these count on neither side.
func estimateAbove(differences []float64, number float64) int {
	d := slices.Sorted(slices.Values(differences))
	rounding := 1e-12 * max(d[len(d)-1]-d[0], math.Abs(number))
	return len(d)*(len(d)+1)/2 - walshUpTo(d, number+rounding) - walshUpTo(d, number-rounding)
}

// furtherUp is the share of campaigns with a shift that end further up than one with a stage
// and an estimate; those that end where it did count half.
func furtherUp(logs []float64, looks []Look, stage int, estimate, shift float64, signs [][]uint64) float64 {
	flipped, twice := make([]float64, len(logs)), 0
	for _, s := range signs {
		for i, x := range logs {
			distance := math.Abs(x - shift)
			if s[i/64]>>(i%64)&1 == 0 {
				distance = -distance
			}
			flipped[i] = shift + distance
		}
		above := stageOf(flipped, looks) - stage
		if above == 0 {
			above = estimateAbove(flipped, estimate)
		}
		twice += 1 + min(max(above, -1), 1)
	}
	return float64(twice) / float64(2*len(signs))
}
