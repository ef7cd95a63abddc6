package render

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"linktrial/internal/checkout"
	"linktrial/internal/testkind"
	"linktrial/orchestrator/report"
	"linktrial/orchestrator/report/reporttest"
	"linktrial/orchestrator/report/typeset"
)

// TestReportPDF: the report of every kind of campaign is a PDF, the one of hostile names too.
func TestReportPDF(t *testing.T) {
	testkind.OfTest(t, testkind.RealTime, "runs Typst as a process, which may take two minutes")
	if os.Getenv(typeset.Variable) == "" {
		root, err := checkout.Root()
		require.NoError(t, err)
		t.Setenv(typeset.Variable, filepath.Join(root, "bin", "typst"))
	}
	for name, ds := range reporttest.Datasets() {
		require.True(t, strings.HasPrefix(render(t, ds, "report-pdf"), "%PDF-"), name)
	}
}

// TestReportPDFMissing: what a machine lacks for a PDF is said once.
func TestReportPDFMissing(t *testing.T) {
	testkind.OfTest(t, testkind.Exact, "no process is started")
	t.Setenv(typeset.Variable, "/nonexistent")
	f, err := As(reporttest.Campaign(reporttest.Quickstart()), "report-pdf", report.Options{})
	require.NoError(t, err)
	err = f.Write(io.Discard)
	require.ErrorIs(t, err, typeset.ErrMissing)
	require.True(t, strings.HasPrefix(err.Error(), "the report as PDF cannot be made on this machine"), err.Error())
}
