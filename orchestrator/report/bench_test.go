package report_test

import (
	"testing"

	"linktrial/orchestrator/report"
	"linktrial/orchestrator/report/reporttest"
)

// BenchmarkAnalyse is a campaign of 10 000 trials in 500 runs, with what the
// pages of results ask of it.
func BenchmarkAnalyse(b *testing.B) {
	ds := reporttest.Big(500, 5)
	b.Run("tables", func(b *testing.B) {
		for b.Loop() {
			report.Analyse(ds, report.Options{})
		}
	})
	b.Run("curves", func(b *testing.B) {
		a := report.Analyse(ds, report.Options{})
		for b.Loop() {
			for _, axis := range a.SweptAxes() {
				a.ChartsOf("throughput-kb-per-s", axis)
			}
		}
	})
}
