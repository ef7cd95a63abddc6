package results

import (
	"bytes"
	"context"
	"encoding/csv"
	"strconv"
	"time"

	"linktrial/orchestrator/report"
	"linktrial/orchestrator/report/render"
	"linktrial/orchestrator/report/wording"
	"linktrial/orchestrator/store"
	"linktrial/orchestrator/telemetry"
)

// readingsCSV is all that radios told, and when; no data set holds it.
const readingsCSV = "readings-csv"

var readingsHeader = []string{"run", "node", "role", "source", "kind", "figure", "value", "unit", "counter", "at_utc", "trial", "attempt", "at_s", "error"}

// showsTelemetry are the formats for which data sets are filled with it.
var showsTelemetry = map[string]bool{"json": true, "telemetry-csv": true}

func fillTelemetry(ctx context.Context, st *store.Store, ds *report.Dataset) error {
	for i := range ds.Runs {
		if err := telemetry.Fill(ctx, st.Queries, &ds.Runs[i]); err != nil {
			return err
		}
	}
	return nil
}

// writeReadings is every reading of the runs, also those between trials, and
// why a source told nothing.
func writeReadings(ctx context.Context, st *store.Store, ds *report.Dataset) (render.File, error) {
	var out bytes.Buffer
	w := csv.NewWriter(&out)
	if err := w.Write(readingsHeader); err != nil {
		return render.File{}, err
	}
	for i := range ds.Runs {
		run := &ds.Runs[i]
		err := telemetry.Readings(ctx, st.Queries, run, func(r *telemetry.Reading) error {
			value, counter, trial, attempt, since := "", "", "", "", ""
			if r.Value != nil {
				value, counter = strconv.FormatFloat(*r.Value, 'g', -1, 64), strconv.FormatBool(r.Counter)
			}
			if r.Trial != nil {
				trial, attempt, since = strconv.Itoa(r.Trial.Index), strconv.Itoa(r.Attempt.Attempt), strconv.FormatFloat(r.Since.Seconds(), 'f', 6, 64)
			}
			return w.Write(wording.Cells([]string{run.ID, r.Node, r.Role, r.Source, r.Kind, r.Figure, value, r.Unit, counter, r.At.UTC().Format(time.RFC3339Nano),
				trial, attempt, since, wording.Clean(r.Error)}))
		})
		if err != nil {
			return render.File{}, err
		}
	}
	w.Flush()
	return render.File{Name: "readings.csv", MediaType: "text/csv; charset=utf-8", Content: out.Bytes()}, w.Error()
}
