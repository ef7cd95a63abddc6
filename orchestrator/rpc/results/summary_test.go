package results

import (
	"testing"

	"github.com/stretchr/testify/require"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/orchestrator/report"
	"linktrial/orchestrator/report/reporttest"
)

// Curves of many trials are thinned evenly, to their end.
func TestThinned(t *testing.T) {
	steps := make([]report.DeliveryStep, 1001)
	for i := range steps {
		steps[i].Delivered = i + 1
	}
	require.Len(t, thinned(steps[:250], 250), 250)
	got := thinned(steps, 250)
	require.Len(t, got, 250)
	require.Equal(t, 1001, got[249].Delivered)
	for i, last := 0, 0; i < len(got); i++ {
		require.InDelta(t, 4, got[i].Delivered-last, 1)
		last = got[i].Delivered
	}
}

// Requirements keep their order, and each outcome is one of the API's.
func TestRequirementsOfASummary(t *testing.T) {
	v := report.Analyse(reporttest.Required(), report.Options{})
	outcomes := map[linktrialv1.RequiredOutcome]int{}
	for i := range v.Tables {
		table := &v.Tables[i]
		got := asSummary(table, &v.Dataset.Runs[i]).Requirements
		require.Len(t, got, len(table.Requirements))
		for k, r := range got {
			j := &table.Requirements[k]
			require.Equal(t, []any{int32(j.Entry), j.Label, j.Text, j.Treatment, j.Probe}, []any{r.Entry, r.Label, r.Text, r.Treatment, r.Probe})
			outcomes[r.Outcome]++
		}
	}
	require.Equal(t, map[linktrialv1.RequiredOutcome]int{
		linktrialv1.RequiredOutcome_REQUIRED_OUTCOME_PASS:      8,
		linktrialv1.RequiredOutcome_REQUIRED_OUTCOME_FAIL:      1,
		linktrialv1.RequiredOutcome_REQUIRED_OUTCOME_UNDECIDED: 4,
	}, outcomes)
}
