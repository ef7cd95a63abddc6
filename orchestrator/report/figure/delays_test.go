package figure

import (
	"strings"
	"testing"

	"linktrial/orchestrator/report"
	"linktrial/orchestrator/report/reporttest"
)

func TestDelaysAreWellFormed(t *testing.T) {
	for name, ds := range reporttest.Datasets() {
		t.Run(name, func(t *testing.T) { checkSVG(t, drawn(t, Delays, ds)) })
	}
}

// A curve for each row with a distribution, three marks at each, and what the clocks
// are uncertain by.
func TestDelaysShowEveryRow(t *testing.T) {
	ds := reporttest.Probed()
	s := drawn(t, Delays, ds)
	count := checkSVG(t, s)
	rows, beside := 0, 2
	for _, table := range report.Summarize(ds) {
		for _, p := range table.Probes {
			if p.Capacity == nil {
				rows++
			}
		}
	}
	if rows != 10 || count["path"] != rows {
		t.Errorf("%d curves of %d rows, expected 10", count["path"], rows)
	}
	if got := count["circle"] + count["polygon"]; got != 3*rows+beside {
		t.Errorf("%d marks of %d rows and %d in the legend", got, rows, beside)
	}
	for _, want := range []string{
		"beside TCP CUBIC: 50 % of the packets within", "alone: 99 % of the packets within", "± 25.0 ms; 1.00 % of those sent were lost",
		"both ends have one clock", "the clocks were compared: ± 25.0 ms", "the clocks were not compared", "Delay above the shortest (ms)",
	} {
		if !strings.Contains(s, want) {
			t.Errorf("%q is not in the drawing", want)
		}
	}
	// A driver without percentiles.
	for i := range ds.Runs {
		for k := range ds.Runs[i].Trials {
			ds.Runs[i].Trials[k].Attempts[0].Probes[0].Metrics.Delay.PercentilesNS = nil
		}
	}
	if s := drawn(t, Delays, ds); !strings.Contains(s, "no distribution was measured") || checkSVG(t, s)["path"] != 0 {
		t.Error("a curve of a probe without a distribution")
	}
}
