package render

import (
	"io"

	"linktrial/orchestrator/report"
)

var jsonFormat = &Format{Name: "json", Title: "JSON", File: "results.json", MediaType: jsonText, Telemetry: true,
	Holds:     "everything: the dataset and the tables",
	bootstrap: true, write: func(w io.Writer, v *report.Analysis) error { return v.WriteJSON(w) }}
