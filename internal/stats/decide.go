package stats

import "math"

// Decision is what pairs of two treatments decide: whether one is faster than the other.
type Decision struct {
	Pairs int
	// Ratio is value / reference, its interval that of the level left to one of several
	// comparisons, and P corrected for them ([Decide]); as of a [Comparison].
	Ratio    float64
	Interval Interval
	P        float64
	// Decided: the interval does not contain 1.
	Decided bool
	// More is about how many further pairs would decide it; 0 where it is decided or
	// where that cannot be said, [ManyMore] where there are more than that.
	More int
}

// ManyMore bounds [Decision].More: a number beyond it says only "many".
const ManyMore = 1000

// minDecision is the fewest pairs of which a spread is worth anything.
const minDecision = 3

// Decide judges pairs that are one comparison of so many, after Bonferroni: the interval
// has the level 1 − (1 − level)/comparisons, and P is that many times its own. So the
// interval and P belong together, whichever of the comparisons is looked at.
//
// More supposes that estimate and spread of the logarithms of the ratios stay as they
// are: it is how many pairs are lacking until the half-width of an interval with that
// spread, Student's, which falls with the root of the number of pairs, is below the
// estimate, so that the interval excludes 1; and never fewer than the test needs to
// refuse anything at the level. Student's is taken because it exists of few pairs, where
// the signed-rank test has no interval or nearly the whole range. At that number the
// interval only just excludes 1, so that the chance of a decision there is about even.
// It is not said of fewer than three pairs, nor of an estimate within one standard
// error of the mean from 1: chance alone then sets the number.
func Decide(pairs []Pair, level float64, comparisons int) Decision {
	level = 1 - (1-level)/float64(max(1, comparisons))
	logs := logRatios(pairs)
	shift := SignedRankShift(logs, level)
	d := Decision{Pairs: len(pairs), Ratio: math.Exp(shift.Estimate),
		Interval: Interval{math.Exp(shift.Interval.Low), math.Exp(shift.Interval.High)},
		P:        min(1, shift.P*float64(max(1, comparisons)))} // NaN stays NaN
	d.Decided = shift.Interval.Low > 0 || shift.Interval.High < 0
	if !d.Decided {
		d.More = more(logs, shift.Estimate, level)
	}
	return d
}

func more(logs []float64, estimate, level float64) int {
	n, sd := len(logs), StdDev(logs)
	away := math.Abs(estimate)
	if n < minDecision || math.IsInf(away, 0) || !(away > sd/math.Sqrt(float64(n))) {
		return 0
	}
	all, ok := untilWithin(sd, level, away)
	if !ok {
		return ManyMore + 1
	}
	// Where Student's interval excludes 1 already, the signed-rank test does not.
	return min(max(1, all-n, LeastPairs(level)-n), ManyMore+1)
}

// LeastPairs is the fewest pairs of which the signed-rank test can refuse anything at a
// level: with all of one sign, its P is 2^(1−n).
func LeastPairs(level float64) int {
	n := 1
	for math.Ldexp(1, 1-n) > 1-level {
		n++
	}
	return n
}

// logRatios are the logarithms of value / reference; NaN where a value is not positive.
func logRatios(pairs []Pair) []float64 {
	logs := make([]float64, len(pairs))
	for i, p := range pairs {
		if p.Value > 0 && p.Reference > 0 {
			logs[i] = math.Log(p.Value) - math.Log(p.Reference)
		} else {
			logs[i] = math.NaN()
		}
	}
	return logs
}
