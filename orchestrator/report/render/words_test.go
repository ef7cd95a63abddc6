package render

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"linktrial/orchestrator/report"
	"linktrial/orchestrator/report/reporttest"
)

// What directors write is in reports and in the export of everything, and changes no byte of
// any other file.
func TestWordsAreInReportsAlone(t *testing.T) {
	with := reporttest.Compared()
	const hostile = "=HYPERLINK(\"x\")\",<script>alert(1)</script> \\input{/etc/passwd} #read(\"/etc/passwd\") |`*_$"
	with.Words = []report.Words{{Campaign: with.Campaign, Title: hostile, Author: hostile, Summary: hostile, Remarks: map[string]string{"results": hostile}, At: time.Unix(0, 0).UTC()}}
	for _, format := range OfDataset() {
		words, none := render(t, with, format), render(t, reporttest.Compared(), format)
		if slices.Contains([]string{"json", "report", "report-pdf"}, format) {
			require.NotEqual(t, none, words, format)
		} else {
			require.Equal(t, none, words, format)
		}
	}
}
