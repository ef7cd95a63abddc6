package stats

import (
	"math"
	"math/rand/v2"
	"testing"
)

// ofLogs is pairs with these logarithms of their ratios.
func ofLogs(logs ...float64) (pairs []Pair) {
	for _, x := range logs {
		pairs = append(pairs, Pair{100, 100 * math.Exp(x)})
	}
	return pairs
}

// The worked example of Kalibera and Jones (2013) with two levels, which the tests of
// libkalibera hold, too: three executions with four measurements each.
func TestOverRunsOfKaliberaAndJones(t *testing.T) {
	o := CompareOverRuns([][]Pair{ofLogs(9, 5, 8, 3), ofLogs(10, 6, 7, 11), ofLogs(1, 12, 2, 4)}, 0.95, 1)
	within(t, "mean", math.Log(o.Ratio), 6.5, 1e-9)
	within(t, "S₁² = T₁²", o.Within, 12.7, 0.05)
	within(t, "T₂²", o.Between, 0.4, 0.05)
	within(t, "S₂²", o.Between/o.BetweenShare, 3.6, 0.05)
	within(t, "half", (math.Log(o.Interval.High)-math.Log(o.Interval.Low))/2, 4.302653*math.Sqrt(3.5625/3), 1e-5)
}

// By hand, with the formulae of Kalibera and Jones (2013) for two levels: the means are 0.2,
// 0.4 and 0.9 (mean 0.5, S₂² = 0.13), the variances within runs 0.02, 0.08 and 0.02 (S₁² =
// 0.04), T₂² = 0.13 − 0.04/2 = 0.11; t of two degrees at 97.5 % is 4.302653.
func TestOverRunsByHand(t *testing.T) {
	o := CompareOverRuns([][]Pair{ofLogs(0.1, 0.3), ofLogs(0.2, 0.6), nil, ofLogs(0.8, 1)}, 0.95, 1)
	if o.Runs != 3 || o.Pairs != 6 || o.Decided {
		t.Errorf("%+v", o)
	}
	half := 4.302653 * math.Sqrt(0.13/3)
	within(t, "ratio", math.Log(o.Ratio), 0.5, 1e-12)
	within(t, "low", math.Log(o.Interval.Low), 0.5-half, 1e-6)
	within(t, "high", math.Log(o.Interval.High), 0.5+half, 1e-6)
	within(t, "between", o.Between, 0.11, 1e-12)
	within(t, "within", o.Within, 0.04, 1e-12)
	within(t, "share", o.BetweenShare, 0.11/0.13, 1e-12)
	// 2.776445·√(0.13/5) is 0.448, 3.182446·√(0.13/4) is 0.574.
	if o.More != 2 || o.IterationsDecide { // 4.302653·√(0.11/3) is 0.82
		t.Errorf("%d more runs, expected 2; iterations decide: %v", o.More, o.IterationsDecide)
	}
	if three := CompareOverRuns([][]Pair{ofLogs(0.1, 0.3), ofLogs(0.2, 0.6), ofLogs(0.8, 1)}, 0.95, 3); !(three.Interval.Low < o.Interval.Low) {
		t.Errorf("the interval of one of three comparisons, %v, is not wider than %v", three.Interval, o.Interval)
	}
}

// Each run counts alike, and the estimate of Between allows for their numbers of pairs: S² is
// 0.03 and S₁² 0.02 of three degrees, so that T₂² = 0.03 − 0.02·(1 + 1/2 + 1/3)/3.
func TestOverRunsOfUnequalNumbers(t *testing.T) {
	a := math.Sqrt(0.02)
	o := CompareOverRuns([][]Pair{ofLogs(0.1), ofLogs(0.4-a/math.Sqrt2, 0.4+a/math.Sqrt2), ofLogs(0.1-a, 0.1, 0.1+a)}, 0.95, 1)
	within(t, "ratio", math.Log(o.Ratio), 0.2, 1e-12)
	within(t, "within", o.Within, 0.02, 1e-12)
	within(t, "between", o.Between, 0.03-0.02*(1+0.5+1./3)/3, 1e-12)
}

func TestOverRunsOfTooLittle(t *testing.T) {
	for name, runs := range map[string][][]Pair{
		"two runs":     {ofLogs(0.1, 0.2), ofLogs(0.2, 0.3), nil},
		"none":         nil,
		"not positive": {ofLogs(0.1), ofLogs(0.1), {{0, 1}}},
	} {
		if o := CompareOverRuns(runs, 0.95, 1); o.Interval.Defined() || o.Decided || !math.IsNaN(o.Between) || o.More != 0 {
			t.Errorf("%s: %+v", name, o)
		}
	}
	single := CompareOverRuns([][]Pair{ofLogs(0.1), ofLogs(0.11), ofLogs(0.12)}, 0.95, 1)
	if !single.Decided || !math.IsNaN(single.BetweenShare) || !math.IsNaN(single.Within) {
		t.Errorf("runs of one pair do not tell what varies within: %+v", single)
	}
	if same := CompareOverRuns([][]Pair{ofLogs(0.1, 0.2), ofLogs(0.1, 0.2), ofLogs(0.2, 0.1)}, 0.95, 1); !math.IsNaN(same.BetweenShare) || !same.Decided {
		t.Errorf("means that do not vary: %+v", same)
	}
	// Where iterations differ and runs do not, iterations could decide.
	noise := CompareOverRuns([][]Pair{ofLogs(0.5, -0.1), ofLogs(0.55, -0.25), ofLogs(0.3, 0.18)}, 0.95, 10)
	if noise.Decided || !noise.IterationsDecide || noise.Between != 0 || noise.BetweenShare != 0 {
		t.Errorf("%+v", noise)
	}
}

// ofRuns is the pairs of runs whose ratios differ by a spread, and those of a run by 20 %.
// Iterations differ much more, which pairs take away.
func ofRuns(rng *rand.Rand, runs, iterations int, ratio, between float64) [][]Pair {
	out := make([][]Pair, runs)
	for i := range out {
		of := math.Log(ratio) + between*rng.NormFloat64()
		for range iterations {
			both := 100 * math.Exp(rng.NormFloat64())
			out[i] = append(out[i], Pair{both, both * math.Exp(of+0.2*rng.NormFloat64())})
		}
	}
	return out
}

// The interval over runs contains the ratio in 93 to 97 % of 2000 campaigns, whether or not
// runs differ. That of all pairs together does where they do not differ, and else falls short.
func TestCoverageOverRuns(t *testing.T) {
	for _, runs := range []int{3, 6, 12} {
		for _, between := range []float64{0, 0.1, 0.3} {
			rng := rand.New(rand.NewPCG(2013, uint64(1000*between)+uint64(runs)))
			const campaigns, ratio = 2000, 1.3
			covered, pooled, shares := 0, 0, 0.0
			for range campaigns {
				all := ofRuns(rng, runs, 10, ratio, between)
				o := CompareOverRuns(all, 0.95, 1)
				if o.Interval.Low <= ratio && ratio <= o.Interval.High {
					covered++
				}
				shares += o.BetweenShare / campaigns
				var pairs []Pair
				for _, p := range all {
					pairs = append(pairs, p...)
				}
				i := MeanT(logRatios(pairs), 0.95)
				if i.Low <= math.Log(ratio) && math.Log(ratio) <= i.High {
					pooled++
				}
			}
			share, ignoring := float64(covered)/campaigns, float64(pooled)/campaigns
			t.Logf("%d runs, %g between: %.3f, ignoring runs %.3f; share between %.2f", runs, between, share, ignoring, shares)
			if share < 0.93 || share > 0.97 {
				t.Errorf("%d runs that differ by %g: the interval contains the ratio in %.3f of campaigns", runs, between, share)
			}
			if short := ignoring < 0.85; short != (between > 0) {
				t.Errorf("%d runs that differ by %g: the interval that ignores runs contains the ratio in %.3f of campaigns", runs, between, ignoring)
			}
		}
	}
}

// The estimates of both variances are right on average, also of unequal numbers of pairs.
// Between is cut off at 0, which matters little at this spread.
func TestVariancesOverRunsAreUnbiased(t *testing.T) {
	rng := rand.New(rand.NewPCG(2013, 1))
	between, inside := 0.0, 0.0
	const campaigns = 4000
	for range campaigns {
		all := ofRuns(rng, 12, 10, 1, 0.3)
		for i := range all {
			all[i] = all[i][:2+i%9]
		}
		o := CompareOverRuns(all, 0.95, 1)
		between, inside = between+o.Between/campaigns, inside+o.Within/campaigns
	}
	within(t, "between", between, 0.09, 0.002)
	within(t, "within", inside, 0.04, 0.001)
}
