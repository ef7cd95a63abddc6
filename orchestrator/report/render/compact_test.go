package render

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"linktrial/orchestrator/report"
	"linktrial/orchestrator/report/reporttest"
)

// The table of many runs says of each run what its comparison comes to, as its data set has it.
func TestCompactTableSaysWhoLeads(t *testing.T) {
	ds := reporttest.Big(mostTables+2, 6)
	f, err := As(ds, "table", report.Options{})
	require.NoError(t, err)
	b, err := f.Content()
	require.NoError(t, err)
	text := strings.Join(strings.Fields(string(b)), " ") // lines are broken at the width
	said := 0
	for _, table := range report.Summarize(ds) {
		if table.Lead.Text != "" {
			said++
			require.Contains(t, text, ": "+table.Lead.Text)
		}
	}
	require.Equal(t, mostTables+2, said)
	require.Regexp(t, regexp.MustCompile(`Of \d+ runs, .+ leads in \d+ \(\d+ decided\)|In \d+ runs? no treatment leads\.`), text)
}
