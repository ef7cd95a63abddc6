package report_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/executor/stoprule"
	"linktrial/internal/stats"
	"linktrial/orchestrator/report"
)

// stoppable is a run of 20 iterations with a rule that looks after 10, 15 and 20, as the leading
// node would have walked through it: times are seconds by treatment and iteration, 0 a failure.
func stoppable(times func(treatment string, iteration int) float64, names ...string) report.Run {
	all := map[string][]float64{}
	for _, name := range names {
		for i := 1; i <= 20; i++ {
			all[name] = append(all[name], times(name, i))
		}
	}
	r := timesOf(100*time.Second, all, names...)
	r.Sheet.Stop = &runsheet.Stop{Looks: []int{10, 15, 20}, Alpha: 0.05, Spending: stats.Pocock}
	for i := range r.Sheet.Trials {
		r.Sheet.Trials[i].Flows = []runsheet.Flow{{Treatment: r.Sheet.Trials[i].Treatment, SizeBytes: 1 << 20}}
	}
	seen := stoprule.Times{}
	for name, ts := range all {
		for k, s := range ts {
			if s == 0 {
				s = 100
			}
			seen.Set(name, k+1, s)
		}
	}
	var beaten []string
	for _, at := range r.Sheet.Stop.Looks {
		l := stoprule.Judge(r.Sheet, seen, at, beaten)
		beaten, r.Looks = l.Beaten, append(r.Looks, l)
		for i := range r.Trials {
			t := &r.Trials[i]
			if t.Iteration > at && stoprule.NotNeeded(&r.Sheet.Trials[i], r.Looks) {
				t.Verdict, t.Attempts = journal.Aborted, nil
				delete(seen[t.Treatment], t.Iteration)
			}
		}
		if l.Stop {
			break
		}
	}
	return r
}

// wobble is a time that differs by iteration, as of a channel that all share.
func wobble(base float64, iteration int) float64 { return base + float64(iteration*7%5) }

func TestStoppedByItsRule(t *testing.T) {
	r := stoppable(func(name string, i int) float64 {
		switch name {
		case "fast":
			return wobble(20, i) - float64(i%3)/10
		case "slow":
			return wobble(25, i)
		}
		return 0 // never delivers
	}, "slow", "never", "fast")
	table := tableOf(r)
	require.False(t, table.Partial, "a run that its rule stopped is complete")
	s := table.Stopping
	require.True(t, s.Stopped)
	require.Equal(t, 10, s.After)
	require.ElementsMatch(t, []report.Beaten{{Treatment: "slow", Label: "SLOW", After: 10}, {Treatment: "never", Label: "NEVER", After: 10}}, s.Beaten)
	for _, row := range table.Rows {
		require.Equal(t, 10, row.Trials, row.Treatment)
		require.Equal(t, 10, row.NotNeeded, row.Treatment)
		require.Zero(t, row.Excluded, row.Treatment)
		require.Nil(t, row.MoreIterations)
		if c := row.Comparison; c != nil {
			require.NotNil(t, c.Ratio)
			require.Nil(t, c.RatioCI, "it is of a fixed number of iterations")
			require.Nil(t, c.P)
			require.Nil(t, c.PHolm)
		}
		if d := row.Delivery.Difference; d != nil {
			require.Nil(t, d.SoonerCI)
			require.Nil(t, d.P)
		}
	}
	require.Regexp(t, `^After iteration 10 of at most 20, the rule found FAST to deliver sooner than (SLOW, NEVER|NEVER, SLOW)\. It takes 0\.8\d+ of the time of the next, SLOW \(0\.\d+ to 0\.\d+ at 95 % over all looks and comparisons, median-unbiased, 10 iterations\)\.$`, table.Conclusion)
	require.Equal(t, report.Lead{Text: "FAST delivers sooner than all others: decided", Leader: "FAST", Decided: true}, table.Lead)
	require.Contains(t, table.Heading(), "20 iterations · stopped by its rule after 10")
	require.True(t, strings.HasPrefix(table.Notes[0], "Rule to stop by: looks after iterations 10, 15, 20; "), table.Notes[0])
	require.NotContains(t, strings.Join(table.Notes, " "), "Friedman")
	require.Len(t, table.Notes, 3, "the rule, and the two comparisons that are not the conclusion's: %q", table.Notes)
}

func TestRuleThatDropsOne(t *testing.T) {
	r := stoppable(func(name string, i int) float64 {
		if name == "never" {
			return 0
		}
		return wobble(20, i) + float64((i*len(name))%4)/5 - float64(i%2)*0.3
	}, "one", "other", "never")
	table := tableOf(r)
	require.False(t, table.Stopping.Stopped)
	require.Equal(t, 20, table.Stopping.After)
	require.Equal(t, []report.Beaten{{Treatment: "never", Label: "NEVER", After: 10}}, table.Stopping.Beaten)
	require.Equal(t, "After iteration 20 of at most 20, the rule has found beaten NEVER (after 10); of the others it decides nothing.", table.Conclusion)
	require.Equal(t, []int{20, 20, 10}, []int{table.Rows[0].Trials, table.Rows[1].Trials, table.Rows[2].Trials})
	require.Contains(t, table.Heading(), "20 iterations · not stopped by its rule")
	for _, c := range table.Stopping.Comparisons {
		require.Equal(t, c.Decided, c.RatioCI != nil && (c.RatioCI.High < 1 || c.RatioCI.Low > 1), "%+v", c)
	}
}

// Marks that are set after a stop change values, not what had been decided, and results say so.
func TestMarksAfterTheStop(t *testing.T) {
	r := stoppable(func(name string, i int) float64 {
		if name == "slow" {
			return wobble(25, i)
		}
		return wobble(20, i)
	}, "slow", "fast")
	require.Empty(t, tableOf(r).Stopping.Since)
	for i := range r.Trials {
		if a := &r.Trials[i]; a.Treatment == "slow" && a.Iteration <= 6 {
			a.Attempts[0].Verdict = journal.Invalid
		}
	}
	table := tableOf(r)
	require.True(t, table.Stopping.Stopped)
	require.Equal(t, "What counts now is not what the rule saw (marks and the other nodes' journals came later): it would not find beaten SLOW.", table.Stopping.Since)
	require.Equal(t, table.Stopping.Since, table.Notes[1])
	require.Len(t, table.Stopping.Beaten, 1)
}

func TestRuleThatHasNotLooked(t *testing.T) {
	r := stoppable(wobbleOf, "a", "b")
	r.State, r.Looks = "running", nil
	table := tableOf(r)
	require.Equal(t, "The rule to stop by has not looked yet.", table.Conclusion)
	require.Contains(t, table.Heading(), "20 iterations · with a rule to stop by")
	require.Regexp(t, `^So far B takes 0\.\d+ to 1\.\d+ of the time of A \(95 % over all comparisons, whenever one looks\)\.$`, table.Notes[1])
	r.State = "completed"
	require.Nil(t, tableOf(r).Stopping.Comparisons[0].AnytimeCI, "nobody looks in between any more")
}

func wobbleOf(name string, i int) float64 {
	return wobble(20, i) + float64((i*len(name)*int(name[0]))%7)/10
}

// A rule whose record says why it could not be followed stops nothing, and results say so.
func TestRuleThatCouldNotBeFollowed(t *testing.T) {
	r := stoppable(wobbleOf, "a", "b")
	r.Looks = []journal.Look{{Iteration: 10, Fault: "iteration 3: expected positive values, found 0 and 1"}}
	require.Equal(t, "After iteration 10 of at most 20, the rule could not be followed: iteration 3: expected positive values, found 0 and 1.", tableOf(r).Conclusion)
}
