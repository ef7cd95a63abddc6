package results

import (
	"context"
	"slices"
	"strconv"
	"time"

	"linktrial/orchestrator/report"
	"linktrial/orchestrator/report/render"
	"linktrial/orchestrator/report/wording"
	"linktrial/orchestrator/store"
	"linktrial/orchestrator/telemetry"
)

// readingsCSV is all that radios told, and when.
const readingsCSV = "readings-csv"

var readingsHeader = []string{"run", "node", "role", "source", "kind", "figure", "value", "unit", "counter", "at_utc", "trial", "attempt", "at_s", "error"}

func fillTelemetry(ctx context.Context, st *store.Store, ds *report.Dataset) error {
	for i := range ds.Runs {
		if err := telemetry.Fill(ctx, st.Conn, &ds.Runs[i]); err != nil {
			return err
		}
	}
	return nil
}

// writeReadings writes every reading of the runs, also those between trials, and why a
// source told nothing. One run is in memory at a time.
func writeReadings(ctx context.Context, st *store.Store, runs []store.RunHeadsRow, leave leftOut, out *output) error {
	w := render.NewCSV(out)
	if err := w.Write(readingsHeader); err != nil {
		return err
	}
	for i := range runs {
		run, _, err := st.Run(ctx, runs[i].ID)
		if err != nil {
			return err
		}
		err = telemetry.Readings(ctx, st.Conn, run, func(r *telemetry.Reading) error {
			if r.Trial != nil && slices.Contains(leave, r.Trial.Treatment) {
				return nil
			}
			value, counter, trial, attempt, since := "", "", "", "", ""
			if r.Value != nil {
				value, counter = strconv.FormatFloat(*r.Value, 'g', -1, 64), strconv.FormatBool(r.Counter)
			}
			if r.Trial != nil {
				trial, attempt, since = strconv.Itoa(r.Trial.Index), strconv.Itoa(r.Attempt.Attempt), strconv.FormatFloat(r.Since.Seconds(), 'f', 6, 64)
			}
			return w.Write(wording.Cells([]string{run.ID, r.Node, r.Role, r.Source, r.Kind, r.Metric, value, r.Unit, counter, r.At.UTC().Format(time.RFC3339Nano),
				trial, attempt, since, wording.Clean(r.Error)}))
		})
		if err != nil {
			return err
		}
		if err := out.share(float64(i+1) / float64(len(runs))); err != nil {
			return err
		}
	}
	w.Flush()
	return w.Error()
}
