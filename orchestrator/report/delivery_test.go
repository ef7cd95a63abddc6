package report_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/orchestrator/report"
)

// timesOf is a run of treatments with the times of their transfers, seconds; 0: failed after one.
func timesOf(limit time.Duration, times map[string][]float64, names ...string) report.Run {
	rates := map[string][]float64{}
	for name, ts := range times {
		for _, s := range ts {
			rate := 0.0
			if s > 0 {
				rate = 1024 / s // of 1 MiB
			}
			rates[name] = append(rates[name], rate)
		}
	}
	r := runOf(rates, names...)
	r.Sheet.Limits = runsheet.Limits{Transfer: limit}
	for i := range r.Trials {
		if a := &r.Trials[i].Attempts[0]; a.Verdict == journal.Failed {
			a.Duration = time.Second
		}
	}
	return r
}

func tableOf(r report.Run) report.RunTable {
	return report.Summarize(&report.Dataset{Complete: true, Runs: []report.Run{r}})[0]
}

// Trials that failed were not delivered, however early their protocol gave up.
func TestDelivery(t *testing.T) {
	r := timesOf(100*time.Second, map[string][]float64{"a": {10, 20, 30, 40}, "b": {10, 0, 30, 0}}, "a", "b")
	rows := tableOf(r).Rows
	a, b := rows[0].Delivery, rows[1].Delivery
	require.InDelta(t, 1, *a.Share, 0)
	require.InDelta(t, 25, *a.MeanSeconds, 1e-9)
	require.InDelta(t, 25, *a.MedianSeconds, 1e-9, "as the median of a sample")
	require.InDelta(t, 4096.0/100, *a.GoodputKBps, 1e-6)
	require.Nil(t, a.Difference, "of the reference")
	require.InDelta(t, 0.5, *b.Share, 0)
	require.InDelta(t, (10+30+100+100)/4.0, *b.MeanSeconds, 1e-9)
	require.InDelta(t, 2048.0/42, *b.GoodputKBps, 1e-6, "the seconds of those that failed count, too")
	require.Equal(t, 4, b.Difference.Pairs, "each iteration counts, also where one failed")
	require.InDelta(t, 25-60, *b.Difference.SoonerSeconds, 1e-9)
	require.InDelta(t, 20, *rows[1].ElapsedSeconds, 1e-9, "the mean of those that succeeded, as before")
}

// What an earlier attempt took that the protocol failed was waited for; the time of an invalid
// one was the apparatus's.
func TestDeliveryAfterFailedAttempts(t *testing.T) {
	r := timesOf(100*time.Second, map[string][]float64{"a": {10, 10, 10}}, "a")
	done := r.Trials[0].Attempts[0]
	r.Trials[0].Attempts = []report.Attempt{{Attempt: 1, Verdict: journal.TimedOut, Duration: 60 * time.Second}, done}
	r.Trials[1].Attempts = []report.Attempt{{Attempt: 1, Verdict: journal.Invalid, Duration: 60 * time.Second}, done}
	r.Trials[2].Attempts = []report.Attempt{{Attempt: 1, Verdict: journal.Failed, Duration: 95 * time.Second}, done}
	d := tableOf(r).Rows[0].Delivery
	require.InDelta(t, (70.0+10+100)/3, *d.MeanSeconds, 1e-6)
	require.InDelta(t, 2.0/3, *d.Share, 1e-9, "the third came after the horizon")
}

// A trial that tells nothing of its protocol is in no time to delivery, nor one whose transfers
// end by a time, nor is there one of a run whose limits nobody knows.
func TestNoDelivery(t *testing.T) {
	r := timesOf(100*time.Second, map[string][]float64{"a": {10, 20, 30, 40}}, "a")
	r.Trials[3].Attempts[0].Verdict, r.Trials[3].Verdict = journal.Invalid, journal.Invalid
	require.Equal(t, 3, tableOf(r).Rows[0].Delivery.Trials)
	for i := range r.Sheet.Trials {
		r.Sheet.Trials[i].Flows = []runsheet.Flow{{Duration: time.Second}}
	}
	require.Nil(t, tableOf(r).Rows[0].Delivery)
	r = timesOf(0, map[string][]float64{"a": {10, 20, 30, 40}}, "a")
	require.Nil(t, tableOf(r).Rows[0].Delivery)
}

// A protocol is a tenth slower in every trial that it completes, and gives up in each outage of
// over 30 s. The average of the trials that succeeded is the higher one; the other protocol's
// payload is there sooner, and that is what the conclusion says.
func TestConclusionIsNotOverSurvivors(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 35))
	times := map[string][]float64{}
	for range 200 {
		outage := rng.ExpFloat64() * 36.5
		times["steady"] = append(times["steady"], 77+outage)
		a := 1.1 * (77 + outage)
		if outage > 30 {
			a = 0
		}
		times["hasty"] = append(times["hasty"], a)
	}
	table := tableOf(timesOf(300*time.Second, times, "hasty", "steady"))
	hasty, steady := table.Rows[0], table.Rows[1]
	require.InDelta(t, 0.56, *hasty.Delivery.Share, 0.06)
	require.Greater(t, *hasty.AverageKBps, *steady.AverageKBps, "the survivors' average")
	require.InDelta(t, 185, *hasty.Delivery.MeanSeconds, 15)
	require.InDelta(t, 114, *steady.Delivery.MeanSeconds, 8)
	require.True(t, strings.HasPrefix(table.Conclusion, "STEADY delivers "), table.Conclusion)
	require.Contains(t, table.Conclusion, "): decided (p < 0.001).")
	require.Contains(t, table.Conclusion, fmt.Sprintf(" Shares of failures differ, so this is over the time to delivery of all trials; averages leave out those that failed: HASTY %d of 200.", hasty.Failed))
	require.Equal(t, "STEADY", table.Lead.Leader)
	require.True(t, table.Lead.Decided)
}

func TestConclusionOverDelivery(t *testing.T) {
	ten := []float64{10, 11, 12, 10, 11, 12, 10, 11}
	for name, c := range map[string]struct {
		times map[string][]float64
		want  string
	}{
		"not decided": {map[string][]float64{"a": ten, "b": {20, 0, 22, 20, 0, 22, 20, 21}},
			"A delivers 29.75 s sooner than B (−0.823 to 60.32 s at 95 %, restricted mean up to 100 s, paired t, 8 iterations): not decided (p = 0.055); about 1 more iteration would be needed. Shares of failures differ, so this is over the time to delivery of all trials; averages leave out those that failed: B 2 of 8."},
		"all failed": {map[string][]float64{"a": ten, "b": {0, 0, 0, 0, 0, 0, 0, 0}},
			"A delivers 89.12 s sooner than B (55.99 to 89.82 s at 95 %, restricted mean up to 100 s, paired t, 8 iterations): decided (p < 0.001). Shares of failures differ, so this is over the time to delivery of all trials; averages leave out those that failed: B 8 of 8."},
		"alike": {map[string][]float64{"a": {10, 0, 10}, "b": {0, 20, 20}}, "A and B are not compared: 1 iteration has valid values of both, and a comparison takes 3."},
		"few":   {map[string][]float64{"a": {10, 0}, "b": {20, 20}}, "B and A are not compared: 2 iterations have an outcome of both, and a comparison takes 3."},
	} {
		if got := tableOf(timesOf(100*time.Second, c.times, "a", "b")).Conclusion; got != c.want {
			t.Errorf("%s:\n%s\n%s", name, got, c.want)
		}
	}
}

// A horizon of the plan takes the place of the limit: what came after it was not delivered by
// then, and counts as the horizon in the mean.
func TestDeliveryHorizon(t *testing.T) {
	r := timesOf(100*time.Second, map[string][]float64{"a": {10, 20, 30, 40}, "b": {10, 0, 10, 40}}, "a", "b")
	r.Sheet.Limits.Horizon = 25 * time.Second
	rows := tableOf(r).Rows
	a, b := rows[0].Delivery, rows[1].Delivery
	require.InDelta(t, 25, a.HorizonSeconds, 0)
	require.InDelta(t, 0.5, *a.Share, 0)
	require.InDelta(t, (10+20+25+25)/4.0, *a.MeanSeconds, 1e-9)
	require.Equal(t, 4, rows[0].Valid, "the average has all of them")
	require.InDelta(t, 4096.0/100, *a.GoodputKBps, 1e-6, "of all that was delivered")
	require.InDelta(t, (10+25+10+25)/4.0, *b.MeanSeconds, 1e-9)
	require.Len(t, a.Curve, 2)
	require.InDelta(t, 20, a.Curve[1].Seconds, 1e-9)
	require.Equal(t, 2, a.Curve[1].Delivered)
	require.Len(t, b.Curve, 1, "two at the same time are a step")
	require.Equal(t, 2, b.Curve[0].Delivered)
	require.InDelta(t, 0.5, *b.Curve[0].Share, 1e-9)
}

// Where a treatment delivered nothing, nothing tells how much sooner it might: there is no
// interval around the horizon, and none of width 0 around no difference.
func TestNothingDeliveredHasNoInterval(t *testing.T) {
	table := tableOf(timesOf(100*time.Second, map[string][]float64{"a": {0, 0, 0, 0}, "b": {0, 0, 0, 0}, "c": {10, 20, 30, 40}}, "a", "b", "c"))
	for _, r := range table.Rows[:2] {
		require.InDelta(t, 100, *r.Delivery.MeanSeconds, 0)
		require.Nil(t, r.Delivery.MeanCI)
	}
	d := table.Rows[1].Delivery.Difference
	require.InDelta(t, 0, *d.SoonerSeconds, 0)
	require.Nil(t, d.SoonerCI)
	require.Nil(t, d.P)
	require.NotNil(t, table.Rows[2].Delivery.Difference.SoonerCI, "a treatment that delivers against one that does not")
	require.True(t, strings.HasPrefix(table.Conclusion, "Of 3 treatments, C delivers 75.00 s sooner than the next, A ("), table.Conclusion)
}
