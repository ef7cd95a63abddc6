package report_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"linktrial/executor/runsheet"
	"linktrial/internal/stats"
	"linktrial/orchestrator/report"
)

func TestStopLooks(t *testing.T) {
	looks := func(n int) *runsheet.Stop {
		s := &runsheet.Stop{}
		for i := range n {
			s.Looks = append(s.Looks, 10+i)
		}
		return s
	}
	for n, want := range map[int]string{
		1: "after iteration 10",
		8: "after iterations 10, 11, 12, 13, 14, 15, 16, 17",
		9: "after iterations 10, 11, 12, 13, …, 18 (9 looks)",
	} {
		require.Equal(t, want, report.StopLooks(looks(n)))
	}
}

// A run with a rule has a line for it, and what its comparisons find is said of all iterations.
func TestPowerOfARunWithARule(t *testing.T) {
	r, plain := cellRun("x-1", 30, "a", "b", "c", "d"), cellRun("x-2", 30, "a", "b", "c", "d")
	r.Sheet.Stop = &runsheet.Stop{Looks: []int{10, 15, 20, 25, 30}, Alpha: 0.05, Spending: stats.OBrienFleming}
	lines := powerOf(t, report.PowerOptions{}, r, plain)
	require.Len(t, lines, 3)
	require.Contains(t, lines[0].Text, "; this is of a run to its last iteration, before which its rule to stop by may end it")
	require.Equal(t, []int{0}, lines[1].Runs)
	require.Regexp(t, `^rule to stop by: it looks after iterations 10, 15, 20, 25, 30; obrien-fleming spends 5 % over all looks and 6 comparisons: 4 treatments are compared pair by pair, by time to delivery \(a failed trial counts as the horizon, [^)]+\); one that is beaten has no more trials, and the run ends when one is left; the first look that can decide anything is after iteration 15; a comparison takes about 30 iterations on average where nothing differs, and about 25 where the difference is the one that is found with 80 % chance by iteration 30; a fixed number that finds it as often is about 30$`, lines[1].Text)
	require.Equal(t, []int{1}, lines[2].Runs)
	require.NotContains(t, lines[2].Text, "rule")

	r.Sheet.Stop.Spending = "none"
	_, err := report.Power(never, []*runsheet.Sheet{r.Sheet}, report.PowerOptions{})
	require.ErrorContains(t, err, `rule to stop by: spending: expected obrien-fleming or pocock, found "none"`)
}

// The numbers of iterations that people read are those of simulated campaigns, although these
// are judged by ranks and the printed ones are of normal statistics. With a
// difference, ranks take a little longer: 24.9 and 22.0 iterations where 24 and 20 are printed.
func TestPrintedIterationsAreThoseOfTheRule(t *testing.T) {
	const campaigns, last = 250, 30
	for _, spending := range []stats.Spending{stats.OBrienFleming, stats.Pocock} {
		r := cellRun("x-1", last, "a", "b")
		r.Sheet.Stop = &runsheet.Stop{Looks: []int{10, 15, 20, 25, last}, Alpha: 0.05, Spending: spending}
		text := powerOf(t, report.PowerOptions{}, r)[1].Text
		printed := regexp.MustCompile(`takes about ([0-9.]+) iterations on average where nothing differs, and about ([0-9.]+) where`).FindStringSubmatch(text)
		require.Len(t, printed, 3, text)
		d, err := stats.SpendingDesign(spending, 0.05, []float64{10. / last, 15. / last, 20. / last, 25. / last, 1})
		require.NoError(t, err)
		// The mean of the standardised rank sum of normal differences is √(3n/π) of their shift.
		shift := d.Information(0.8).Drift / math.Sqrt(last*3/math.Pi)
		for i, shift := range []float64{0, shift} {
			want, err := strconv.ParseFloat(printed[i+1], 64)
			require.NoError(t, err)
			mean, found := simulated(t, r.Sheet.Stop.Sequential(), shift, campaigns)
			t.Logf("%s, shift %.2f: %.2f iterations, %.3f found, printed %v", spending, shift, mean, found, want)
			require.InDelta(t, want, mean, 2.1, fmt.Sprint(spending, shift))
			if shift > 0 {
				require.InDelta(t, 0.8, found, 0.1)
			} else {
				require.LessOrEqual(t, found, 0.1)
			}
		}
	}
}

// simulated is the mean number of iterations of campaigns of two treatments, and the share in
// which a difference was found.
func simulated(t *testing.T, rule stats.Sequential, shift float64, campaigns int) (iterations, found float64) {
	t.Helper()
	rng := rand.New(rand.NewPCG(35, uint64(1000*shift)))
	last := rule.Looks[len(rule.Looks)-1]
	for range campaigns {
		c := stats.FamilyComparison{Reference: "a", Value: "b"}
		for i := range last {
			c.Blocks = append(c.Blocks, stats.Block{Iteration: i + 1, Pair: stats.Pair{Reference: 1, Value: math.Exp(shift + rng.NormFloat64())}})
		}
		looks, _, err := rule.Family([]stats.FamilyComparison{c}, false, last)
		require.NoError(t, err)
		iterations += float64(looks[0].Iteration)
		if looks[0].Stops {
			found++
		}
	}
	return iterations / float64(campaigns), found / float64(campaigns)
}
