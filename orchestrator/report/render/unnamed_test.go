package render

import (
	"strings"
	"testing"

	"linktrial/executor/journal"
	"linktrial/orchestrator/report/reporttest"
)

// Every output of runs on a real radio that nobody has named says so, also where it calls
// the radio by the plan's profile.
func TestUnnamedRadioIsTold(t *testing.T) {
	for name, ds := range reporttest.Datasets() {
		for i := range ds.Runs {
			ds.Runs[i].Place = journal.PlaceUnnamed
		}
		for _, format := range OfDataset() {
			if !Find(format).Text() { // it has what the CSV file has
				continue
			}
			got := render(t, ds, format)
			// Breaches of the contract are about a driver, whatever the radio.
			if strings.Count(got, "\n") < 2 || format == "breaches-csv" || len(ds.Runs) == 0 {
				continue
			}
			if !strings.Contains(got, "unnamed radio") {
				t.Errorf("%s of %s does not say that the radio has no name:\n%.300s", format, name, got)
			}
		}
	}
}
