package stats

import "math"

// leastRuns is the fewest runs that an interval over runs is made of: two tell next to nothing
// of how much runs differ.
const leastRuns = 3

// roundingSpread is a standard deviation of logarithms that rounding alone may make.
const roundingSpread = 1e-9

// OverRuns is the ratio of two treatments over several runs, which are taken as a sample of
// places or days: the two levels of Kalibera and Jones, "Rigorous Benchmarking in Reasonable
// Time" (ISMM 2013), with runs at the top and pairs of an iteration below.
type OverRuns struct {
	Runs, Pairs int // runs that have pairs
	// Ratio is value / reference: the mean over runs of the mean logarithm of a run's ratios,
	// so that each run counts alike, however many iterations it has. NaN without runs, and
	// where a value is not positive.
	Ratio float64
	// Interval is Student's of the runs' means, with runs − 1 degrees of freedom; NaN below
	// three runs.
	Interval Interval
	// Between and Within are unbiased estimates of the variance of the logarithms: of what runs
	// differ by beside the chance of their iterations, and of the pairs of one run. Between is
	// 0 where the estimate is negative. NaN below three runs, or where no run has two pairs.
	Between, Within float64
	// BetweenShare is which part of the variance of the mean comes from Between: more
	// iterations in the same runs do not reduce it. NaN where the means do not vary.
	BetweenShare float64
	// Decided: the interval does not contain 1.
	Decided bool
	// More is about how many further runs would decide it, as [Decision].More of pairs.
	More int
	// IterationsDecide: any number of iterations in the same runs could decide it, were
	// estimates to stay as they are. False where it is decided, and where that is not known.
	IterationsDecide bool
}

// CompareOverRuns holds two treatments against each other by the pairs of each run. The
// interval is that of one of so many comparisons, as of [Decide].
//
// The variance of the mean of k runs is S²/k, with the variance S² of the runs' means. Its
// expectation is Between + Within · mean(1/n) for runs of n pairs, which has the unbiased
// estimate of Between: with equal n that of Kalibera and Jones, T₂² = S₂² − S₁²/n (which may
// be negative).
func CompareOverRuns(runs [][]Pair, level float64, comparisons int) OverRuns {
	level = 1 - (1-level)/float64(max(1, comparisons))
	var means []float64
	o := OverRuns{Interval: undefined, Between: math.NaN(), Within: math.NaN(), BetweenShare: math.NaN()}
	squares, degrees, inverse := 0.0, 0, 0.0
	for _, pairs := range runs {
		if len(pairs) == 0 {
			continue
		}
		logs := logRatios(pairs)
		means = append(means, Mean(logs))
		o.Runs, o.Pairs, inverse = o.Runs+1, o.Pairs+len(pairs), inverse+1/float64(len(pairs))
		if sd := StdDev(logs); len(logs) > 1 {
			squares, degrees = squares+sd*sd*float64(len(logs)-1), degrees+len(logs)-1
		}
	}
	mean := Mean(means)
	o.Ratio = math.Exp(mean)
	if o.Runs < leastRuns || math.IsNaN(mean) {
		return o
	}
	i := MeanT(means, level)
	o.Interval, o.Decided = Interval{math.Exp(i.Low), math.Exp(i.High)}, i.Low > 0 || i.High < 0
	sd := StdDev(means)
	if degrees > 0 {
		o.Within = squares / float64(degrees)
		o.Between = max(0, sd*sd-o.Within*inverse/float64(o.Runs))
		if sd > roundingSpread {
			o.BetweenShare = o.Between / (sd * sd)
		}
	}
	if !o.Decided {
		o.More = moreRuns(mean, sd, level, o.Runs)
		o.IterationsDecide = tQuantile(level, float64(o.Runs-1))*math.Sqrt(o.Between/float64(o.Runs)) < math.Abs(mean)
	}
	return o
}

// moreRuns is how many further runs Student's interval of their means lacks to exclude 0.
func moreRuns(mean, sd, level float64, runs int) int {
	if !(math.Abs(mean) > sd/math.Sqrt(float64(runs))) {
		return 0
	}
	all, ok := untilWithin(sd, level, math.Abs(mean))
	if !ok {
		return ManyMore + 1
	}
	return min(max(1, all-runs), ManyMore+1)
}
