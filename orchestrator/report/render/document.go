package render

import (
	"io"

	"linktrial/orchestrator/report"
	"linktrial/orchestrator/report/document"
)

var reportFormat = &Format{Name: "report", Title: "Report, one HTML page", File: "report.html", MediaType: "text/html; charset=utf-8", Document: true,
	Holds: "the [report](report.md) as one page that needs no network",
	write: func(w io.Writer, v *report.Analysis) error {
		d, err := document.Of(v)
		if err != nil {
			return err
		}
		return document.HTML(w, d)
	}}
