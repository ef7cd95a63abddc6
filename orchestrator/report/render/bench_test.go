package render_test

import (
	"testing"

	"linktrial/orchestrator/report"
	"linktrial/orchestrator/report/render"
	"linktrial/orchestrator/report/reporttest"
)

// BenchmarkRender is every format of a campaign of 10 000 trials.
func BenchmarkRender(b *testing.B) {
	ds := reporttest.Big(500, 5)
	for _, f := range render.OfDataset() {
		b.Run(f, func(b *testing.B) {
			for b.Loop() {
				if _, err := render.As(ds, f, report.Options{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
