package report_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/orchestrator/report"
	"linktrial/orchestrator/report/reporttest"
)

// heldOf is what is said over the runs of these analyses.
func heldOf(runs ...report.Run) []report.OverRuns {
	for i := range runs {
		runs[i].ID = fmt.Sprintf("r-%d", i)
	}
	return report.HoldRuns(report.Analyse(&report.Dataset{Complete: true, Runs: runs}, report.Options{}))
}

// at is runs of two treatments over real radios: b has so many times the throughput of a in
// each run, with noise of 5 % in its four iterations.
func at(ratios ...float64) (runs []report.Run) {
	for i, x := range ratios {
		r := runOf(map[string][]float64{"a": {100, 100, 100, 100}, "b": {95 * x, 105 * x, 100 * x, 100 * x}}, "a", "b")
		r.Place, r.Sheet.Cell = journal.PlaceReal, runsheet.Cell{Radio: fmt.Sprintf("radio-%d", i%2), Topology: fmt.Sprintf("hill-%d", i/2), SizeBytes: 1 << 20}
		runs = append(runs, r)
	}
	return runs
}

func TestOverRuns(t *testing.T) {
	sets := heldOf(at(1.2, 1.3, 1.5, 1.4)...)
	require.Len(t, sets, 1)
	o := sets[0]
	// The mean of ln 1.2, 1.3, 1.5 and 1.4 less 0.00063 of the noise; SD 0.0957, t 3.182, √4.
	require.Equal(t, "Over 4 runs (1 MiB, "+journal.PlaceReal+"), B has 1.34 times the throughput of A (1.15 to 1.57 at 95 %): decided. 95 % of the variance of this mean is between runs.", o.Conclusion)
	require.Equal(t, "throughput", o.Metric)
	require.Equal(t, []string{"r-0", "r-1", "r-2", "r-3"}, o.Runs)
	require.Len(t, o.Comparisons, 1)
	c := o.Comparisons[0]
	require.Equal(t, []any{"a", "b", 4, 16}, []any{c.Reference, c.Value, c.Runs, c.Pairs})
	require.InDelta(t, 1.34, *c.MeanRatio, 0.005)
	require.InDelta(t, 1.15, c.MeanRatioCI.Low, 0.005)
	require.InDelta(t, 0.95, *c.BetweenShare, 0.005)

	// ln 0.8, 1.3, 1.5 and 1.2: mean 0.157, SD 0.270; with 14 runs t is 2.160, with 13 too much.
	undecided := heldOf(at(0.8, 1.3, 1.5, 1.2)...)[0]
	require.Contains(t, undecided.Conclusion, "): not decided; about 10 more runs would be needed, and more iterations of these would not decide it. ")
	require.Equal(t, 10, undecided.Comparisons[0].MoreRuns)
	require.Contains(t, heldOf(at(0.8, 0.7, 0.75)...)[0].Conclusion, ", A has 1.34 times the throughput of B (", "the leader first")
}

func TestOverRunsAreOfOneKind(t *testing.T) {
	require.Empty(t, heldOf(at(1.2, 1.3)...), "two runs")
	for name, change := range map[string]func(*report.Run){
		"size":    func(r *report.Run) { r.Sheet.Cell.SizeBytes = 1 << 10 },
		"group":   func(r *report.Run) { r.Sheet.Cell.Group = "others" },
		"setting": func(r *report.Run) { r.Sheet.Cell.Settings = []runsheet.Setting{{Axis: "loss", Label: "0.1"}} },
		"place":   func(r *report.Run) { r.Place = journal.PlaceVirtual },
		"horizon": func(r *report.Run) { r.Sheet.Limits.Horizon = time.Minute },
		"open":    func(r *report.Run) { r.State = "running" },
		"values": func(r *report.Run) {
			for i := range r.Trials {
				r.Trials[i].Verdict, r.Trials[i].Attempts = journal.Aborted, nil
			}
		},
		"options": func(r *report.Run) { r.Sheet.Treatments[1].Options = map[string]any{"window": 7} },
		"missing": func(r *report.Run) {
			r.Sheet.Treatments[1].Missing, r.Trials = "no driver", r.Trials[:4]
		},
	} {
		runs := at(1.2, 1.3, 1.4)
		change(&runs[2])
		require.Empty(t, heldOf(runs...), name)
	}
	// A campaign is a day, and versions of drivers are those of the day.
	runs := at(1.2, 1.3, 1.4)
	runs[1].Sheet.Cell.Settings = []runsheet.Setting{{Axis: report.CampaignAxis, Label: "c-2"}}
	runs[2].Sheet.Treatments[1].DriverVersion, runs[2].Sheet.Treatments[1].Port = "2.0.0", 7
	require.Len(t, heldOf(runs...), 1)
	all := at(1.2, 1.3, 1.4, 1.3)
	all[3].State = "running"
	require.True(t, strings.HasPrefix(heldOf(all...)[0].Conclusion, "So far, over 3 runs ("), "a run of the kind is under way")
}

// Campaigns shown together are days, whether they are merged or not.
func TestOverRunsOfCampaigns(t *testing.T) {
	var apart []*report.Analysis
	var datasets []*report.Dataset
	for i, r := range at(1.2, 1.3, 1.4) {
		r.ID, r.Sheet.Cell.Radio = fmt.Sprintf("c-%d-1", i), "radio"
		ds := &report.Dataset{Campaign: fmt.Sprintf("c-%d", i), Complete: true, Runs: []report.Run{r}}
		datasets, apart = append(datasets, ds), append(apart, report.Analyse(ds, report.Options{}))
	}
	sets := report.HoldRuns(apart...)
	require.Len(t, sets, 1)
	require.Equal(t, sets, report.HoldRuns(report.Analyse(report.Merge(datasets), report.Options{})))
	require.Empty(t, report.HoldRuns(apart[0], apart[1], apart[1]), "a run that is shown twice is one")
}

// Where a treatment gives up, ratios are of times to delivery.
func TestOverRunsOfDelivery(t *testing.T) {
	var runs []report.Run
	for i, b := range []float64{50, 0, 60} {
		r := timesOf(100*time.Second, map[string][]float64{"a": {20, 20, 20}, "b": {b, 50, 50}}, "a", "b")
		r.Sheet.Cell.Topology = fmt.Sprint(i)
		runs = append(runs, r)
	}
	o := heldOf(runs...)[0]
	require.Equal(t, "time to delivery", o.Metric)
	require.Regexp(t, `^Over 3 runs \(.*\), A takes 0\.36\d? of the time to delivery of B \(.* Shares of failures differ, so this is over the time to delivery of all trials; one that failed counts as the horizon\.$`, o.Conclusion)
	// B takes 2.5 times the time of A, but 5 times (the horizon) and 3 times in an iteration each.
	require.InDelta(t, 2.755, *o.Comparisons[0].MeanRatio, 0.001)
}

func TestOverRunsLeaveOut(t *testing.T) {
	ruled := stoppable(func(name string, iteration int) float64 {
		return wobble(map[string]float64{"a": 30, "b": 20}[name], iteration)
	}, "a", "b")
	ruled.Place, ruled.Sheet.Cell, ruled.Sheet.Limits = journal.PlaceReal, runsheet.Cell{SizeBytes: 1 << 20}, runsheet.Limits{}
	require.Contains(t, heldOf(append(at(1.2, 1.3, 1.4), ruled)...)[0].Conclusion, " Left out: 1 run with a rule to stop by, whose ratios are biased.")

	runs := at(1.2, 1.3, 1.4, 1.4)
	for i := range runs {
		runs[i].Place, runs[i].Sheet.Trials[0].ChannelSeed = journal.PlaceVirtual, 7
	}
	runs[3].Sheet.Cell = runs[2].Sheet.Cell
	o := heldOf(runs...)[0]
	require.Len(t, o.Runs, 3)
	require.Contains(t, o.Conclusion, " Left out: 1 run with the channel realisations of another one.")

	// What is not shown is in no list, but in the conclusions.
	a := report.Analyse(reporttest.Places(), report.Options{LeaveOut: []string{"udt"}})
	o = report.HoldRuns(a)[0]
	require.Len(t, o.Comparisons, 1)
	require.Contains(t, o.Conclusion, "of 3 treatments, UDT has ")
}

// A treatment with other options in one run is another one; mixes are in none.
func TestOverRunsOfTheSameTreatments(t *testing.T) {
	ds := reporttest.Places()
	ds.Runs[1].Sheet.Treatments[2].Options["congestion"] = "reno"
	o := report.HoldRuns(report.Analyse(ds, report.Options{}))[0]
	require.Len(t, o.Comparisons, 1)
	require.Contains(t, o.Conclusion, "TCP BBR has ")
	require.Contains(t, o.Conclusion, " Left out, as options or flows differ between runs: UDT.")
	ds = reporttest.Places()
	for i := range ds.Runs {
		s := ds.Runs[i].Sheet
		s.Mixes, s.Treatments = []runsheet.Mix{{Name: "udt", Label: "A mix"}}, s.Treatments[:2]
	}
	require.NotContains(t, report.HoldRuns(report.Analyse(ds, report.Options{}))[0].Conclusion, "mix")
}

func TestOverRunsTexts(t *testing.T) {
	sets := make([]report.OverRuns, 12)
	for i := range sets {
		sets[i].Conclusion = fmt.Sprintf("Sentence %d.", i)
	}
	texts := report.OverRunsTexts(sets)
	require.Len(t, texts, 12)
	require.Equal(t, "2 more conclusions over runs are in results.json.", texts[10])
	texts = report.OverRunsTexts(sets[:1])
	require.Len(t, texts, 2)
	require.Equal(t, "Sentence 0.", texts[0])
	require.Contains(t, texts[1], "Student's t")
	require.Empty(t, report.OverRunsTexts(nil))
}

// Exports of before there were conclusions over runs are read; a changed one is found.
func TestReadImportOverRuns(t *testing.T) {
	var tree map[string]any
	require.NoError(t, json.Unmarshal([]byte(exported(t, func(ds *report.Dataset) {
		ds.Runs = reporttest.Places().Runs
		for i := range ds.Runs {
			sheet, err := ds.Runs[i].Sheet.Encode()
			require.NoError(t, err)
			ds.Runs[i].ID, ds.Runs[i].SheetHash = fmt.Sprintf("their4xq-%d", 1+i), runsheet.Hash(sheet)
		}
	})), &tree))
	read := func() error {
		var b bytes.Buffer
		require.NoError(t, json.NewEncoder(&b).Encode(tree))
		_, err := report.ReadImport(b.Bytes())
		return err
	}
	require.NoError(t, read())
	o := tree["over_runs"].([]any)[0].(map[string]any)
	o["metric"] = "time to delivery"
	require.ErrorContains(t, read(), "over_runs[0].metric is ")
	delete(tree, "over_runs")
	delete(tree["methods"].(map[string]any), "mean_ratio_ci95")
	require.NoError(t, read())
}
