package render

import (
	"testing"

	"linktrial/orchestrator/report/reporttest"
)

// trials.parquet has the columns, rows and values of trials.csv.
func TestParquet(t *testing.T) {
	for name, ds := range reporttest.Datasets() {
		t.Run(name, func(t *testing.T) {
			reporttest.SameTable(t, render(t, ds, "trials-csv"), []byte(render(t, ds, "trials-parquet")))
		})
	}
}
