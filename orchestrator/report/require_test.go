package report_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
	"linktrial/orchestrator/report"
	"linktrial/orchestrator/report/reporttest"
)

var ptr = reporttest.Ptr[float64]

// judged is what a run's results say of requirements.
func judged(r report.Run, all ...runsheet.Requirement) []report.Judgement {
	r.Sheet.Require = all
	return tableOf(r).Requirements
}

func atLeast(m runsheet.Metric, treatment string, x float64) runsheet.Requirement {
	return runsheet.Requirement{Entry: 1, Metric: m, Treatment: treatment, AtLeast: &x}
}

// The whole interval decides; a value that equals a bound meets it. Of 100 to 130 KB/s the mean
// is 115 KB/s and Student's interval 94.46 to 135.5 KB/s.
func TestRequiredAverage(t *testing.T) {
	spread := map[string][]float64{"a": {100, 110, 120, 130}}
	same := map[string][]float64{"a": {100, 100, 100}}
	for _, c := range []struct {
		rates       map[string][]float64
		least, most *float64
		outcome     report.RequiredOutcome
		text        string
		state       string // empty: completed
	}{
		{spread, ptr(94), nil, report.Pass, "average 115 KB/s, 94.46 to 135.5 KB/s at 95 %, at least 94 KB/s required", ""},
		{spread, ptr(95), nil, report.Undecided, "average 115 KB/s, 94.46 to 135.5 KB/s at 95 %, at least 95 KB/s required", ""},
		{spread, ptr(135), nil, report.Undecided, "average 115 KB/s, 94.46 to 135.5 KB/s at 95 %, at least 135 KB/s required", ""},
		{spread, ptr(136), nil, report.Fail, "average 115 KB/s, 94.46 to 135.5 KB/s at 95 %, at least 136 KB/s required", ""},
		{spread, nil, ptr(136), report.Pass, "average 115 KB/s, 94.46 to 135.5 KB/s at 95 %, at most 136 KB/s required", ""},
		{spread, nil, ptr(94), report.Fail, "average 115 KB/s, 94.46 to 135.5 KB/s at 95 %, at most 94 KB/s required", ""},
		{spread, ptr(90), ptr(140), report.Pass, "average 115 KB/s, 94.46 to 135.5 KB/s at 95 %, 90 to 140 KB/s required", ""},
		{spread, ptr(100), ptr(140), report.Undecided, "average 115 KB/s, 94.46 to 135.5 KB/s at 95 %, 100 to 140 KB/s required", ""},
		{spread, ptr(136), ptr(140), report.Fail, "average 115 KB/s, 94.46 to 135.5 KB/s at 95 %, 136 to 140 KB/s required", ""},
		{same, ptr(100), nil, report.Pass, "average 100 KB/s, 100 to 100 KB/s at 95 %, at least 100 KB/s required", ""},
		{same, nil, ptr(100), report.Pass, "average 100 KB/s, 100 to 100 KB/s at 95 %, at most 100 KB/s required", ""},
		{same, ptr(100.5), nil, report.Fail, "average 100 KB/s, 100 to 100 KB/s at 95 %, at least 100.5 KB/s required", ""},
		{spread, ptr(20480), nil, report.Fail, "average 0.1123 MB/s, 0.09224 to 0.1324 MB/s at 95 %, at least 20 MB/s required", ""},
		{spread, ptr(94), nil, report.Undecided, "average 115 KB/s, 94.46 to 135.5 KB/s at 95 %, at least 94 KB/s required; the run is partial", "aborted"},
		{map[string][]float64{"a": {100}}, ptr(94), nil, report.Undecided, "average 100 KB/s, at least 94 KB/s required; no interval of 1 valid trial", ""},
		{map[string][]float64{"a": {0, 0}}, ptr(94), nil, report.Undecided, "average, at least 94 KB/s required; no valid trial", ""},
		{map[string][]float64{"a": {100, 0, 100, 0}}, ptr(94), nil, report.Pass, "average 100 KB/s, 100 to 100 KB/s at 95 %, at least 94 KB/s required; 2 of 4 trials failed, so that the average is of 2 of 4", ""},
	} {
		r := runOf(c.rates, "a")
		if c.state != "" {
			r.State = c.state
		}
		j := judged(r, runsheet.Requirement{Entry: 1, Metric: runsheet.MetricAverage, Treatment: "a", AtLeast: c.least, AtMost: c.most})[0]
		require.Equal(t, c.text, j.Text)
		require.Equal(t, c.outcome, j.Outcome, c.text)
		require.Equal(t, "A", j.Label)
	}
}

// An excluded trial is in no value; a mark that excludes one changes the outcome.
func TestRequiredAfterExclusion(t *testing.T) {
	r := runOf(map[string][]float64{"a": {100, 100, 100, 20}}, "a")
	q := atLeast(runsheet.MetricAverage, "a", 99)
	require.Equal(t, report.Undecided, judged(r, q)[0].Outcome)
	r.Trials[3].Verdict, r.Trials[3].Attempts[0].Verdict = journal.Invalid, journal.Invalid
	require.Equal(t, report.Pass, judged(r, q)[0].Outcome)
}

// Delivered by a time: Wilson's interval over valid and failed trials. 10 of 10 are 72.25 to
// 100 %, 9 of 10 59.58 to 98.21 %.
func TestRequiredDelivered(t *testing.T) {
	ten := []float64{10, 11, 12, 13, 14, 15, 16, 17, 18, 20}
	by := func(d time.Duration, share float64) runsheet.Requirement {
		q := atLeast(runsheet.MetricDelivered, "a", share)
		q.By = d
		return q
	}
	r := timesOf(100*time.Second, map[string][]float64{"a": ten}, "a")
	all := judged(r, by(20*time.Second, 0.72), by(20*time.Second-1, 0.72), by(20*time.Second-1, 0.99), by(5*time.Second, 0.5))
	require.Equal(t, "delivered by 20 s 100 %, 72.25 to 100 % at 95 %, at least 72 % required", all[0].Text)
	require.Equal(t, report.Pass, all[0].Outcome, "what comes at the moment is there by then")
	require.InDelta(t, 0.9, *all[1].Value, 1e-9)
	require.InDelta(t, 0.5958, all[1].CI.Low, 1e-4)
	require.InDelta(t, 0.9821, all[1].CI.High, 1e-4)
	require.Equal(t, report.Undecided, all[1].Outcome)
	require.Equal(t, report.Fail, all[2].Outcome)
	require.Equal(t, report.Fail, all[3].Outcome)
	require.InDelta(t, 0, *all[3].Value, 0)

	// One that failed after a second was not delivered by any time.
	failed := append([]float64{0}, ten[1:]...)
	j := judged(timesOf(100*time.Second, map[string][]float64{"a": failed}, "a"), by(50*time.Second, 0.59))[0]
	require.InDelta(t, 0.9, *j.Value, 1e-9)
	require.Equal(t, 10, j.Trials)
	require.Equal(t, report.Pass, j.Outcome)

	// Nor is anything delivered by a time of a run whose limits nobody knows.
	j = judged(timesOf(0, map[string][]float64{"a": ten}, "a"), by(20*time.Second, 0.72))[0]
	require.Equal(t, report.Undecided, j.Outcome)
	require.Equal(t, "delivered by 20 s, at least 72 % required; no trial", j.Text)
}

// Failures are of the valid and the failed: 0 of 10 are 0 to 27.75 %.
func TestRequiredFailures(t *testing.T) {
	q := func(most float64) runsheet.Requirement {
		return runsheet.Requirement{Entry: 1, Metric: runsheet.MetricFailures, Treatment: "a", AtMost: &most}
	}
	ten := []float64{1, 1, 1, 1, 1, 1, 1, 1, 1, 1}
	all := judged(runOf(map[string][]float64{"a": ten}, "a"), q(0.28), q(0.27))
	require.Equal(t, report.Pass, all[0].Outcome)
	require.Equal(t, "failed 0 %, 0 to 27.75 % at 95 %, at most 28 % required", all[0].Text)
	require.Equal(t, report.Undecided, all[1].Outcome)
	all = judged(runOf(map[string][]float64{"a": {0, 0, 0, 0, 0, 0, 0, 0, 0, 1}}, "a"), q(0.59), q(0.6))
	require.Equal(t, report.Fail, all[0].Outcome)
	require.Equal(t, report.Undecided, all[1].Outcome)
}

// A ratio is that of Hodges and Lehmann by iteration, in percent of the reference's.
func TestRequiredRatio(t *testing.T) {
	q := func(least, most *float64) runsheet.Requirement {
		return runsheet.Requirement{Entry: 1, Metric: runsheet.MetricRatioTo, Treatment: "b", Reference: "a", AtLeast: least, AtMost: most}
	}
	hundred := []float64{100, 100, 100, 100, 100, 100, 100, 100}
	rates := map[string][]float64{"a": hundred, "b": {118, 119, 120, 121, 122, 123, 121, 120}}
	all := judged(runOf(rates, "a", "b"), q(ptr(1.1), nil), q(ptr(1.2), nil), q(ptr(1.23), nil), q(ptr(0.95), nil), q(ptr(0.95), ptr(1.05)), q(ptr(0.95), ptr(1.25)))
	require.Equal(t, "throughput 120.5 % of that of A, 119 to 122 % at 95 %, at least 110 % required", all[0].Text)
	for i, want := range []report.RequiredOutcome{report.Pass, report.Undecided, report.Fail, report.Pass, report.Fail, report.Pass} {
		require.Equal(t, want, all[i].Outcome, i)
	}
	require.Equal(t, 8, all[0].Trials)

	rates["b"][0], rates["a"][1] = 0, 0
	j := judged(runOf(rates, "a", "b"), q(ptr(1.1), nil))[0]
	require.Equal(t, "throughput 121 % of that of A, 120 to 123 % at 95 %, at least 110 % required; 2 trials of the two failed, so that the ratio is of the iterations in which neither did", j.Text)
	require.Equal(t, report.Pass, j.Outcome)

	few := map[string][]float64{"a": {100, 100, 100, 100, 100}, "b": {120, 120, 120, 120, 120}}
	j = judged(runOf(few, "a", "b"), q(ptr(1.1), nil))[0]
	require.Equal(t, report.Undecided, j.Outcome)
	require.Equal(t, "throughput 120 % of that of A, at least 110 % required; no interval of 5 pairs", j.Text)
}

// Shares of the bounds are means over the valid trials that have them.
func TestRequiredShares(t *testing.T) {
	r := reporttest.NewRun("r-1", "mpu4", "WaveRelay MPU4", "flag-pole", "Flag Pole", 1<<20, 10, reporttest.Cubic)
	name := reporttest.Cubic.Name
	all := judged(r, atLeast(runsheet.MetricIdeal, name, 0.69), atLeast(runsheet.MetricIdeal, name, 0.71), atLeast(runsheet.MetricCodedBound, name, 0.74))
	require.Equal(t, "share of Ideal 70 %, 70 to 70 % at 95 %, at least 69 % required", all[0].Text)
	for i, want := range []report.RequiredOutcome{report.Pass, report.Fail, report.Pass} {
		require.Equal(t, want, all[i].Outcome, i)
	}
	r.Trials[0].Attempts[0].Ideal = 0
	require.Equal(t, "share of Ideal 70 %, 70 to 70 % at 95 %, at least 69 % required; known of 9 of 10 valid trials", judged(r, atLeast(runsheet.MetricIdeal, name, 0.69))[0].Text)
	for i := range r.Trials {
		r.Trials[i].Attempts[0].Ideal = 0
	}
	j := judged(r, atLeast(runsheet.MetricIdeal, name, 0.69))[0]
	require.Equal(t, report.Undecided, j.Outcome)
	require.Equal(t, "share of Ideal, at least 69 % required; it is known of no valid trial", j.Text)
}

// A treatment without a driver, and radios that nobody has named.
func TestRequiredOfWhatIsMissing(t *testing.T) {
	r := reporttest.NewRun("r-1", "mpu4", "WaveRelay MPU4", "flag-pole", "Flag Pole", 1<<20, 10, reporttest.Cubic, reporttest.Haul)
	r.Place = journal.PlaceUnnamed
	ratio := atLeast(runsheet.MetricRatioTo, reporttest.Cubic.Name, 1.1)
	ratio.Reference = reporttest.Haul.Name
	all := judged(r, atLeast(runsheet.MetricAverage, reporttest.Haul.Name, 1), atLeast(runsheet.MetricAverage, reporttest.Cubic.Name, 1), ratio)
	require.Equal(t, report.Undecided, all[0].Outcome)
	require.Equal(t, "average, at least 1 KB/s required; missing: no driver of that name is installed; the radio is a real, unnamed radio", all[0].Text)
	require.Equal(t, report.Pass, all[1].Outcome)
	require.Contains(t, all[1].Text, "; the radio is a real, unnamed radio")
	require.Equal(t, report.Undecided, all[2].Outcome)
	require.Contains(t, all[2].Text, "; no pair; ")
}

// Delays are judged by one clock alone; what its comparison leaves open widens the interval.
func TestRequiredOfProbes(t *testing.T) {
	ds := reporttest.Probed()
	q := func(m runsheet.Metric, beside string, most float64) runsheet.Requirement {
		return runsheet.Requirement{Entry: 1, Metric: m, Probe: "voice", From: radio.RoleClient, Treatment: beside, AtMost: &most}
	}
	alone := q(runsheet.MetricDelayMean, "", 80)
	for i, want := range []struct {
		outcome report.RequiredOutcome
		text    string
	}{
		{report.Pass, "mean delay 74.58 ms, 72 to 77.16 ms at 95 %, at most 80 ms required"},
		{report.Undecided, "mean delay 78.58 ms, 51 to 106.2 ms at 95 %, at most 80 ms required; the interval contains the clocks' uncertainty, 25.0 ms"},
		{report.Undecided, "mean delay 2.079 ms, at most 80 ms required; delays are only those above the shortest one: the server's clock was not compared: no control link"},
	} {
		j := judged(ds.Runs[i], alone)[0]
		require.Equal(t, want.text, j.Text)
		require.Equal(t, want.outcome, j.Outcome)
		require.Equal(t, "Voice (G.711), alone", j.Label)
		// Loss needs no clock.
		require.Equal(t, report.Pass, judged(ds.Runs[i], q(runsheet.MetricLoss, reporttest.BBR.Name, 0.02))[0].Outcome)
	}
	all := judged(ds.Runs[0], q(runsheet.MetricDelayP95, reporttest.Cubic.Name, 500), q(runsheet.MetricDelayP99, reporttest.BBR.Name, 10), q(runsheet.MetricLoss, "", 0.008), q(runsheet.MetricLoss, "nobody", 0.5))
	require.Equal(t, "Voice (G.711) beside TCP CUBIC", all[0].Label)
	require.Equal(t, report.Undecided, all[0].Outcome, all[0].Text)
	require.Equal(t, report.Undecided, all[1].Outcome, all[1].Text)
	require.Equal(t, report.Fail, all[2].Outcome, all[2].Text)
	require.Equal(t, "loss 1 %, 0.8143 to 1.227 % at 95 %, at most 0.8 % required", all[2].Text, "Wilson's interval of 90 of 9000 packets, as the trials are alike")
	require.Equal(t, report.Undecided, all[3].Outcome)
	require.Equal(t, "loss, at most 50 % required; no trial", all[3].Text)
}

// The interval of a ratio does not hold where a rule may stop the run; what else was measured is
// judged over the trials that there are.
func TestRequiredOfAStoppedRun(t *testing.T) {
	r := reporttest.Stopped().Runs[0]
	ratio := atLeast(runsheet.MetricRatioTo, reporttest.UDT.Name, 0.5)
	ratio.Reference = reporttest.Cubic.Name
	all := judged(r, ratio, atLeast(runsheet.MetricAverage, reporttest.UDT.Name, 1))
	require.Equal(t, report.Undecided, all[0].Outcome)
	require.Contains(t, all[0].Text, ", at least 50 % required; intervals of ratios are of a fixed number of iterations, and the plan has a rule to stop by; the run was stopped by its rule after 10 of 20 iterations")
	require.Equal(t, report.Pass, all[1].Outcome)
	require.Equal(t, 10, all[1].Trials)
	require.Contains(t, all[1].Text, ", at least 1 KB/s required; the run was stopped by its rule after 10 of 20 iterations")
}
