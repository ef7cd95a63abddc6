package report_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/stats"
	"linktrial/orchestrator/report"
	"linktrial/orchestrator/report/reporttest"
)

func never() error { return nil }

// cellRun is a run of 256 KiB over one radio, with treatments a, b, … of as many protocols.
func cellRun(id string, iterations int, treatments ...string) report.Run {
	ts := make([]reporttest.Treatment, len(treatments))
	for i, name := range treatments {
		ts[i] = reporttest.Treatment{Name: name, Label: strings.ToUpper(name), Protocol: name, KBps: 100}
	}
	return reporttest.NewRun(id, "mpu4", "MPU4", "vip-lot", "VIP lot", 256<<10, iterations, ts...)
}

// vary gives the run throughputs whose ratios to the first treatment's have a spread, and of
// the last treatment an effect.
func vary(r *report.Run, rng *rand.Rand, effect, spread float64) {
	last := r.Sheet.Treatments[len(r.Sheet.Treatments)-1].Name
	for i := range r.Trials {
		seconds := math.Exp(spread / math.Sqrt2 * rng.NormFloat64())
		if r.Trials[i].Treatment == last {
			seconds /= effect
		}
		r.Trials[i].Attempts[0].Elapsed = time.Duration(seconds * 1e9)
	}
}

func powerOf(t *testing.T, o report.PowerOptions, runs ...report.Run) []report.PowerLine {
	t.Helper()
	var sheets []*runsheet.Sheet
	for _, r := range runs {
		sheets = append(sheets, r.Sheet)
	}
	lines, err := report.Power(never, sheets, o)
	require.NoError(t, err)
	return lines
}

func TestPowerAssumed(t *testing.T) {
	two, many := cellRun("x-1", 10, "a", "b"), cellRun("x-2", 10, "a", "b", "c", "d", "e", "f")
	few := cellRun("x-3", 5, "a", "b", "c", "d", "e", "f")
	few.Sheet.Treatments = append(few.Sheet.Treatments, runsheet.Treatment{Name: "gone", Missing: "not built"})
	alone := cellRun("x-4", 10, "a")
	lines := powerOf(t, report.PowerOptions{}, two, many, two, few, alone)
	require.Equal(t, []report.PowerLine{
		{Runs: []int{0, 2}, Text: "B against A: with 10 iterations a difference of 22.6 % is found with 80 % chance, of 30.1 % with 95 %; assumed spread of 20.0 %"},
		{Runs: []int{1}, Text: "each of 5 treatments against A: with 10 iterations a difference of 32.0 % is found with 80 % chance, of 41.5 % with 95 %; assumed spread of 20.0 %"},
		{Runs: []int{3}, Text: "each of 5 treatments against A: no difference can be found with 6 treatments and 5 iterations: 8 iterations are needed"},
	}, lines)
	require.Empty(t, powerOf(t, report.PowerOptions{}, alone))

	lines = powerOf(t, report.PowerOptions{Assumed: 0.1, Effect: 0.1}, two)
	require.Contains(t, lines[0].Text, "; one of 10.0 % takes 12 iterations for 80 % chance, 18 for 95 %; assumed spread of 10.0 %")
	lines = powerOf(t, report.PowerOptions{Assumed: 10, Effect: 0.001}, two)
	require.Contains(t, lines[0].Text, "takes more than 10000 iterations for 80 % chance, more than 10000 for 95 %")

	stop := errors.New("stop")
	_, err := report.Power(func() error { return stop }, []*runsheet.Sheet{two.Sheet}, report.PowerOptions{})
	require.ErrorIs(t, err, stop)
}

// The effects that people read are those that the comparisons of a table find with these
// chances, corrected after Holm: at its first step, and with all steps no less often.
func TestPrintedEffectsAreFound(t *testing.T) {
	const spread, campaigns, iterations, comparisons = 0.3, 6000, 12, 3
	text := powerOf(t, report.PowerOptions{Assumed: spread}, cellRun("x-1", iterations, "a", "b", "c", "d"))[0].Text
	printed := regexp.MustCompile(`of ([0-9.]+) % is found with 80 % chance, of ([0-9.]+) % with 95 %`).FindStringSubmatch(text)
	require.Len(t, printed, 3, text)
	for i, c := range []struct{ chance, within float64 }{{0.8, 0.015}, {0.95, 0.01}} {
		percent, err := strconv.ParseFloat(printed[i+1], 64)
		require.NoError(t, err)
		rng, first, all := rand.New(rand.NewPCG(35, uint64(i))), 0, 0
		for range campaigns {
			var ps, ratios []float64
			for k := range comparisons {
				ratio := 1.
				if k == 0 {
					ratio += percent / 100
				}
				pairs := make([]stats.Pair, iterations)
				for j := range pairs {
					pairs[j] = stats.Pair{Reference: 100, Value: 100 * ratio * math.Exp(spread*rng.NormFloat64())}
				}
				compared := stats.Compare(pairs, 0.95)
				ps, ratios = append(ps, compared.RatioP), append(ratios, compared.Ratio)
			}
			if ratios[0] > 1 && comparisons*ps[0] <= 0.05 {
				first++
			}
			if ratios[0] > 1 && stats.Holm(ps)[0] <= 0.05 {
				all++
			}
		}
		require.InDelta(t, c.chance, float64(first)/campaigns, c.within)
		require.GreaterOrEqual(t, all, first)
	}
}

func TestPowerOfEarlierRuns(t *testing.T) {
	planned := cellRun("new-1", 10, "b", "a", "c") // another order, and other names below
	for i := range planned.Sheet.Treatments {
		planned.Sheet.Treatments[i].Port, planned.Sheet.Treatments[i].DriverVersion = 5900+i, "9"
	}
	earlier, older := cellRun("old-1", 30, "a", "b"), cellRun("old-2", 20, "a", "b")
	rng := rand.New(rand.NewPCG(1, 2))
	vary(&earlier, rng, 1.5, 0.4)
	vary(&older, rng, 0.7, 0.1)
	logs := func(r *report.Run) []float64 {
		var out []float64
		for i := 0; i < len(r.Trials); i += 2 {
			out = append(out, math.Log(float64(r.Trials[i].Attempts[0].Elapsed)/float64(r.Trials[i+1].Attempts[0].Elapsed)))
		}
		return out
	}
	x, y := stats.StdDev(logs(&earlier)), stats.StdDev(logs(&older))
	pooled := math.Sqrt((29*x*x + 19*y*y) / 48)

	unnamed, elsewhere, virtual := earlier, cellRun("old-3", 30, "a", "b"), older
	unnamed.ID, unnamed.Place = "old-4", journal.PlaceUnnamed
	elsewhere.Sheet.Cell.Settings = []runsheet.Setting{{Axis: "loss", Parameter: "loss", Value: "5 %"}}
	virtual.ID, virtual.Place = "old-5", journal.PlaceVirtual
	source := report.SpreadsOf("this orchestrator", []*report.Run{&unnamed, &elsewhere, &earlier, &virtual, &older})
	lines := powerOf(t, report.PowerOptions{Earlier: source}, planned)
	require.Len(t, lines, 2)
	shift := stats.NewPower(0.95, 2).Shift(10, 0.8)
	require.Contains(t, lines[0].Text, fmt.Sprintf("A against B: with 10 iterations a difference of %.1f %%", 100*math.Expm1(shift*pooled)))
	require.Contains(t, lines[0].Text, fmt.Sprintf("; spread of %.1f %%, from 50 iterations of runs old-1, old-2, emulated, real time", 100*pooled))
	require.Contains(t, lines[1].Text, "C against B: with 10 iterations a difference of ")
	require.Contains(t, lines[1].Text, "; assumed spread of 20.0 % (this orchestrator has no run of it with both treatments)")

	planned.Sheet.Cell.SizeBytes++
	require.Contains(t, powerOf(t, report.PowerOptions{Earlier: source}, planned)[0].Text, "each of 2 treatments against B")
	require.Contains(t, powerOf(t, report.PowerOptions{Earlier: source}, planned)[0].Text, "(this orchestrator has no run of its radio, topology, size and settings)")
}

// Failed trials leave fewer pairs.
func TestPowerCountsWithFailures(t *testing.T) {
	r := cellRun("old-1", 10, "a", "b")
	vary(&r, rand.New(rand.NewPCG(3, 4)), 1, 0.2)
	for _, i := range []int{0, 5, 13} { // iterations 1, 3 and 7
		r.Trials[i].Verdict, r.Trials[i].Attempts[0].Verdict = journal.Failed, journal.Failed
	}
	r.Trials[19].Verdict, r.Trials[19].Attempts = "", nil // not ended
	var b bytes.Buffer
	require.NoError(t, report.Analyse(reporttest.Campaign(r), report.Options{}).WriteJSON(&b))
	source, err := report.ReadSpreads("results.json", b.Bytes())
	require.NoError(t, err)
	lines := powerOf(t, report.PowerOptions{Earlier: source, Effect: 0.2}, r)
	require.Regexp(t, `^B against A: with 10 iterations, of which about 6 are valid in both \(as 6 of 9 were\), a difference of [0-9.]+ % is found`, lines[0].Text)
	require.Contains(t, lines[0].Text, "from 6 iterations of run old-1, emulated, real time")
	short := cellRun("new-1", 8, "a", "b")
	lines = powerOf(t, report.PowerOptions{Earlier: source}, short)
	require.Contains(t, lines[0].Text, "no difference can be found with 2 treatments and 8 iterations, of which about 5 are valid in both (as 6 of 9 were): 9 iterations are needed")

	for i := range r.Trials {
		if r.Trials[i].Iteration > 4 {
			r.Trials[i].Verdict, r.Trials[i].Attempts = "", nil
		}
	}
	source = report.SpreadsOf("results.json", []*report.Run{&r})
	lines = powerOf(t, report.PowerOptions{Earlier: source}, short)
	require.Contains(t, lines[0].Text, "assumed spread of 20.0 % (results.json has fewer than 3 iterations in which both are valid)")
	shorter := cellRun("new-2", 5, "a", "b")
	lines = powerOf(t, report.PowerOptions{Earlier: source}, shorter)
	require.Equal(t, "B against A: no difference can be found with 2 treatments and 5 iterations: 6 iterations are needed; assumed spread of 20.0 % (results.json has fewer than 3 iterations in which both are valid)", lines[0].Text)
}

// A run in which nearly all failed counts with its failures, beside one in which none did.
func TestPowerPoolsFailures(t *testing.T) {
	good, bad := cellRun("old-1", 10, "a", "b"), cellRun("old-2", 10, "a", "b")
	vary(&good, rand.New(rand.NewPCG(5, 6)), 1, 0.2)
	for i := range bad.Trials {
		if bad.Trials[i].Iteration > 1 {
			bad.Trials[i].Verdict, bad.Trials[i].Attempts[0].Verdict = journal.TimedOut, journal.TimedOut
		}
	}
	lines := powerOf(t, report.PowerOptions{Earlier: report.SpreadsOf("results.json", []*report.Run{&bad, &good})}, cellRun("new-1", 20, "a", "b"))
	require.Contains(t, lines[0].Text, "with 20 iterations, of which about 11 are valid in both (as 11 of 20 were), a difference of ")
	require.Contains(t, lines[0].Text, "from 11 iterations of runs old-2, old-1, emulated, real time")
}

// Without any variation, as in virtual time without losses, every difference is found.
func TestPowerWithoutSpread(t *testing.T) {
	r := cellRun("old-1", 10, "a", "b")
	vary(&r, rand.New(rand.NewPCG(3, 4)), 2, 0)
	lines := powerOf(t, report.PowerOptions{Earlier: report.SpreadsOf("results.json", []*report.Run{&r}), Effect: 0.01}, r)
	require.Equal(t, "B against A: with 10 iterations any difference of 0.01 % is found: the ratio hardly varies; one of 1.00 % takes 6 iterations for 80 % chance, 6 for 95 %; spread of less than 0.01 %, from 10 iterations of run old-1, emulated, real time", lines[0].Text)
}

// Flows that a time bounds may deliver nothing, and still be valid.
func TestPowerOfAThroughputOfZero(t *testing.T) {
	r := cellRun("old-1", 10, "a", "b")
	r.Trials[3].Attempts[0].SizeBytes = 0
	lines := powerOf(t, report.PowerOptions{Earlier: report.SpreadsOf("results.json", []*report.Run{&r})}, r)
	require.Contains(t, lines[0].Text, "; assumed spread of 20.0 % (results.json has a throughput of 0, whose ratio has no logarithm)")
}

func TestSpreadsOfWhatIsNoExport(t *testing.T) {
	for text, want := range map[string]string{
		"":               "x.json: it ends in line 1 before its JSON does",
		"radio: x":       "x.json: line 1, column 1",
		`{"format": 3}`:  "x.json: results: no dataset",
		`{"format": 99}`: "x.json: results: format 99",
		`{"format": 3, "dataset": {"campaign": "c", "runs": []}}`: "x.json: expected results with a run at least, found none",
	} {
		_, err := report.ReadSpreads("x.json", []byte(text))
		require.ErrorContains(t, err, want)
	}
}

func TestRunNumbers(t *testing.T) {
	for want, runs := range map[string][]int{"run 1": {0}, "runs 1, 2": {0, 1}, "runs 1 to 3, 5": {0, 1, 2, 4}, "runs 2, 4, 5, 7 to 9": {1, 3, 4, 6, 7, 8}} {
		require.Equal(t, want, report.RunNumbers(runs, 12))
	}
	require.Equal(t, "all 3 runs", report.RunNumbers([]int{0, 1, 2}, 3))
	require.Equal(t, "run 1", report.RunNumbers([]int{0}, 1))
}

// What a comparison finds before there is a plan is what explain says of the plan: of four
// treatments and ten iterations 29.8 %, and 53 iterations for 10 % (docs/plans.md).
func TestFinding(t *testing.T) {
	f := report.NewFinding(3, report.AssumedSpread)
	if got := f.Smallest(10); math.Abs(got-0.298) > 0.0005 {
		t.Errorf("ten iterations find %g", got)
	}
	if n, ok := f.Needed(0.1); !ok || n != 53 {
		t.Errorf("10 %% takes %d iterations, %t", n, ok)
	}
	if least := f.Least(); !math.IsInf(f.Smallest(least-1), 1) || math.IsInf(f.Smallest(least), 1) {
		t.Errorf("differences are found from %d iterations on", least)
	}
	if _, ok := f.Needed(1e-4); ok {
		t.Error("a plan may have enough iterations for 0.01 %")
	}
}
