package document

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"linktrial/executor/journal"
	"linktrial/orchestrator/report"
	"linktrial/orchestrator/report/reporttest"
)

func TestProvenance(t *testing.T) {
	ds := described()
	digest := "sha256:" + strings.Repeat("c", 64)
	for i := range ds.Runs {
		ds.Runs[i].Sheet.Treatments[0].Digests = []string{digest}
	}
	ds.Runs[2].Sheet.Treatments[0].Digests = nil
	ds.Runs[1].Place = journal.PlaceVirtual
	ds.Runs[1].Imported = &report.Import{Campaign: "abcd", File: "results.json", SHA256: strings.Repeat("f", 64), By: "ada", At: time.Date(2026, 5, 1, 8, 30, 0, 0, time.UTC)}
	sections := sectionsOf(t, provenance, ds)
	assert.Equal(t, "Linktrial report, format 1", factOf(sections, "Format"))
	assert.Equal(t, "91ab", factOf(sections, "SHA-256 of the plan"))
	assert.Equal(t, "20150817", factOf(sections, "Seed"))
	runs := tableCalled(sections, "Runs, and the run sheets")
	require.Len(t, runs.Rows, 3)
	assert.Equal(t, []string{"1", "c-1", "completed", "2026-03-14 07:26:53 UTC", "2026-03-14 08:26:53 UTC", "5f1d3a"}, runs.Rows[0].Cells)
	profiles := tableCalled(sections, "Radio profiles and topologies")
	assert.Equal(t, []string{"radio profile", "made-up", strings.Repeat("a", 64)}, profiles.Rows[0].Cells)
	assert.Equal(t, []string{"topology", "hill", strings.Repeat("b", 64)}, profiles.Rows[1].Cells)
	drivers := tableCalled(sections, "Drivers")
	require.Len(t, drivers.Rows, 1)
	assert.Equal(t, digest, cellOf(t, drivers, 0, "Digest of the driver"))
	assert.Equal(t, "yes", cellOf(t, drivers, 0, "The sheets accept it"))
	files := tableCalled(sections, "Files of other orchestrators")
	assert.Equal(t, []string{"abcd", "results.json", "ada", "2026-05-01 08:30:00 UTC", strings.Repeat("f", 64)}, files.Rows[0].Cells)
	assert.Contains(t, strings.Join(textsOf(sections), "\n"), "in virtual time are by the lab's clock")

	plain := sectionsOf(t, provenance, reporttest.Campaign(reporttest.Quickstart()))
	assert.Nil(t, sectionNamed(plain, "provenance-imported"))
	assert.NotContains(t, strings.Join(textsOf(plain), "\n"), "virtual time")
}
