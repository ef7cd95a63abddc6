package render

import (
	"io"
	"strconv"

	"linktrial/orchestrator/report"
)

type telemetryRow struct {
	attemptRow
	*report.Telemetry
}

func telemetryColumns() []column[telemetryRow] {
	kept := map[string]bool{"campaign": true, "run": true, "place": true, "radio": true, "topology": true, "trial": true, "iteration": true, "treatment": true,
		"attempt": true, "counted": true, "verdict": true, "throughput_kb_per_s": true}
	var cs []column[telemetryRow]
	for _, c := range trialColumns() {
		if kept[c.name] {
			cs = append(cs, column[telemetryRow]{c.name, func(r telemetryRow) string { return c.value(r.attemptRow) }})
		}
	}
	number := func(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }
	return append(cs, []column[telemetryRow]{
		{"node", func(r telemetryRow) string { return r.Node }},
		{"role", func(r telemetryRow) string { return r.Role }},
		{"source", func(r telemetryRow) string { return r.Source }},
		{"figure", func(r telemetryRow) string { return r.Metric }},
		{"unit", func(r telemetryRow) string { return r.Unit }},
		{"readings", func(r telemetryRow) string { return whole(r.Readings) }},
		{"minimum", func(r telemetryRow) string { return number(r.Minimum) }},
		{"mean", func(r telemetryRow) string { return number(r.Mean) }},
		{"maximum", func(r telemetryRow) string { return number(r.Maximum) }},
		{"imported", func(r telemetryRow) string { return r.run.Imported.Text() }},
	}...)
}

var telemetryFormat = &Format{Name: "telemetry-csv", Title: "CSV, what radios told during each attempt", File: "telemetry.csv", MediaType: csvText, Telemetry: true,
	Holds: "telemetry of the radios, and of the laptops beside them, during each attempt: a row for each metric of each node, with minimum, mean and maximum",
	write: renderTelemetryCSV}

func renderTelemetryCSV(w io.Writer, v *report.Analysis) error {
	var rows []telemetryRow
	for _, a := range attemptRows(v) {
		for i := range a.Telemetry {
			rows = append(rows, telemetryRow{a, &a.Telemetry[i]})
		}
	}
	return writeCSV(w, telemetryColumns(), rows)
}
