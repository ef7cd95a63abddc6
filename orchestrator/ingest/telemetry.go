package ingest

import (
	"linktrial/executor/journal"
	"linktrial/orchestrator/ingest/ingestdb"
)

// addTelemetry keeps readings for the copy at the end, by the node's clock.
func (d *delivery) addTelemetry(r *parsed, b *journal.Telemetry) {
	row := ingestdb.InsertTelemetryParams{RunID: d.run, Node: d.node, Seq: r.Seq, At: d.steady(r.At), Source: text(b.Source), Kind: text(string(b.Kind)), Error: text(b.Error)}
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
