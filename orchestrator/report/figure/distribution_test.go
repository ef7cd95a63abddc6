package figure

import (
	"strings"
	"testing"

	"linktrial/orchestrator/report"
	"linktrial/orchestrator/report/reporttest"
)

func TestDistributionsAreWellFormed(t *testing.T) {
	for name, ds := range reporttest.Datasets() {
		t.Run(name, func(t *testing.T) { checkSVG(t, drawn(t, Distribution, ds)) })
	}
}

// A curve a treatment with valid trials, and a mark a trial.
func TestDistributionShowsEveryTrial(t *testing.T) {
	ds := reporttest.Eventful()
	s := drawn(t, Distribution, ds)
	count := checkSVG(t, s)
	curves, trials, treatments := 0, 0, map[string]bool{}
	for _, table := range report.Summarize(ds) {
		for _, r := range table.Rows {
			if treatments[r.Treatment] = true; r.Valid > 0 {
				curves++
			}
			trials += r.Valid
		}
	}
	if count["path"] != curves {
		t.Errorf("%d curves, %d treatments have valid trials", count["path"], curves)
	}
	if got := count["circle"] + count["polygon"]; got != trials+len(treatments) {
		t.Errorf("%d marks of %d trials and %d in the legend", got, trials, len(treatments))
	}
	if !strings.Contains(s, "10 of 10 trials at most") || !strings.Contains(s, "(missing)") {
		t.Error("the last trial of a run, or a missing treatment, is not named")
	}
}
