package ingest

import (
	"fmt"

	"linktrial/executor/journal"
	"linktrial/orchestrator/store/dbsqlc"
)

// maxReadings is the most figures of one source, far above what a profile may name.
const maxReadings = 1000

func checkTelemetry(t journal.Type, b *journal.Telemetry) error {
	failed := t == journal.TypeTelemetryFailed
	if b.Source == "" || len(b.Values) > maxReadings || failed != (b.Error != "") || failed == (len(b.Values) > 0) {
		return fmt.Errorf("source %q with %d figures and error %q", b.Source, len(b.Values), b.Error)
	}
	seen := map[string]bool{}
	for _, v := range b.Values {
		if v.Name == "" || seen[text(v.Name)] {
			return fmt.Errorf("figure %q of source %s is given twice, or has no name", v.Name, b.Source)
		}
		seen[text(v.Name)] = true
	}
	return nil
}

// addTelemetry keeps readings for the copy at the end, by the node's clock.
func (d *delivery) addTelemetry(r *parsed, b *journal.Telemetry) {
	row := dbsqlc.InsertTelemetryParams{RunID: d.run, Node: d.node, Seq: r.Seq, At: d.steady(r.At), Source: text(b.Source), Kind: text(string(b.Kind)), Error: text(b.Error)}
	if b.Error != "" {
		d.telemetry = append(d.telemetry, row)
		return
	}
	for i := range b.Values {
		v := &b.Values[i]
		row.Name, row.Unit, row.Value, row.Counter = text(v.Name), text(v.Unit), &v.Value, v.Counter
		d.telemetry = append(d.telemetry, row)
	}
}
