package render

import (
	"context"
	"io"
	"time"

	"linktrial/orchestrator/report"
	"linktrial/orchestrator/report/document"
	"linktrial/orchestrator/report/typeset"
)

var reportFormat = &Format{Name: "report", Title: "Report, one HTML page", File: "report.html", MediaType: "text/html; charset=utf-8", Document: true, Samples: true, Telemetry: true,
	Holds: "the [report](report.md) as one page that needs no network",
	write: func(w io.Writer, v *report.Analysis) error {
		d, err := document.Of(v)
		if err != nil {
			return err
		}
		return document.HTML(w, d)
	}}

// longestPDF is the time that a report as PDF may take, with the wait for others.
const longestPDF = 5 * time.Minute

var reportPDFFormat = &Format{Name: "report-pdf", Title: "Report, PDF", File: "report.pdf", MediaType: pdfDocument, Document: true, Samples: true, Telemetry: true,
	Holds: "the [report](report.md) as a tagged PDF (PDF/UA-1), for print and signatures",
	write: inMemory(func(v *report.Analysis) ([]byte, error) {
		d, err := document.Of(v)
		if err != nil {
			return nil, err
		}
		ctx, cancel := context.WithTimeout(context.Background(), longestPDF)
		defer cancel()
		return typeset.PDF(ctx, d)
	})}
