package report_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"linktrial/orchestrator/plan"
	"linktrial/orchestrator/report"
	"linktrial/orchestrator/report/reporttest"
)

func TestMerge(t *testing.T) {
	one, two, again := reporttest.Swept(), reporttest.Swept(), reporttest.Swept()
	two.Campaign, two.Complete, two.Notes = "c-2", false, []string{"a note"}
	for i := range two.Runs {
		two.Runs[i].ID = "two-" + two.Runs[i].ID
	}
	again.Runs = again.Runs[:2] // of the first campaign once more
	require.Same(t, one, report.Merge([]*report.Dataset{one}))
	m := report.Merge([]*report.Dataset{one, two, again})
	require.Equal(t, "c-20260314-1, c-2", m.Campaign)
	require.Equal(t, "sweeps", m.Plan)
	require.False(t, m.Complete)
	require.Equal(t, []string{"a note"}, m.Notes)
	require.Len(t, m.Runs, len(one.Runs)+len(two.Runs))
	require.Equal(t, one.PublishedValues, m.PublishedValues, "both plans carry the same")

	// Every value is as it was, and curves are labelled with their campaign.
	a, first := report.Analyse(m, report.Options{}), report.Analyse(one, report.Options{})
	for i := range first.Tables {
		require.Equal(t, first.Tables[i].Rows, a.Tables[i].Rows)
		require.Contains(t, a.Tables[i].Settings, "campaign c-20260314-1")
	}
	require.Contains(t, a.SweptAxes(), report.CampaignAxis)
	require.NotContains(t, first.SweptAxes(), report.CampaignAxis, "the datasets themselves are left as they were")
	require.Contains(t, a.Charts()[0].Fixed, plan.Condition{Axis: report.CampaignAxis, Value: one.Campaign})
	for _, c := range append(a.Charts(), a.ChartsOf("completed-share", "size")...) {
		for _, l := range c.Curves {
			for _, p := range l.Points {
				require.LessOrEqual(t, p.N, 8, "trials of both campaigns in one point: %+v", c)
			}
		}
	}

	// Two runs of one campaign differ in no campaign.
	m = report.Merge([]*report.Dataset{again, {Campaign: again.Campaign, Runs: one.Runs[2:3]}})
	require.Len(t, m.Runs, 3)
	require.NotContains(t, report.Analyse(m, report.Options{}).SweptAxes(), report.CampaignAxis)
}
