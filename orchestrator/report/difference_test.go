package report_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"linktrial/internal/stats"
	"linktrial/orchestrator/report"
	"linktrial/orchestrator/report/reporttest"
)

func TestDifferences(t *testing.T) {
	ds := reporttest.Compared()
	d := report.HoldCampaigns(report.Analyse(ds, report.Options{}))
	require.Equal(t, []string{"c-20260314-1", "c-20260315-1"}, d.Campaigns)
	require.Len(t, d.Lines, 3, "CUBIC, BBR and UDT")
	require.Equal(t, 2, d.Alone, "SCTP, and CUBIC at K Lot")
	udt := d.Lines[2]
	require.Equal(t, "udt", udt.Treatment)
	require.Equal(t, "AN/PRC-117G, ANW2C at VIP Lot · 256 KiB", udt.Where)
	require.Equal(t, []int{3, 5}, []int{udt.ReferenceValid, udt.Valid})
	require.True(t, udt.Decided(), "%v", udt)
	require.Positive(t, udt.CI.Low)
	require.InDelta(t, *udt.AverageKBps-*udt.ReferenceKBps, *udt.DifferenceKBps, 1e-6)
	require.InDelta(t, 100**udt.DifferenceKBps / *udt.ReferenceKBps, *udt.ChangePercent, 1e-6)
	require.LessOrEqual(t, udt.ChangeCI.Low, *udt.ChangePercent)
	require.GreaterOrEqual(t, udt.ChangeCI.High, *udt.ChangePercent)
	require.Positive(t, udt.ChangeCI.Low, "both intervals decide it")
	require.Equal(t, []report.Lacking{{Where: udt.Where, Label: "SCTP", Campaign: "c-20260315-1"}}, d.Lacking, "the second campaign's own is none")
	require.Empty(t, udt.Changed)
	require.Equal(t, "congestion: cubic → bbr", d.Lines[1].Changed)
	var ps []float64
	for _, l := range d.Lines {
		ps = append(ps, *l.P)
	}
	for i, p := range stats.Holm(ps) {
		require.InDelta(t, p, *d.Lines[i].PHolm, 1e-8)
	}

	// The same from analyses of each campaign, and the other way round.
	apart := []*report.Dataset{reporttest.Campaign(reporttest.Quickstart()), {Campaign: "c-20260315-1", Runs: []report.Run{again(ds.Runs[1])}}}
	both := report.HoldCampaigns(report.Analyse(apart[0], report.Options{}), report.Analyse(apart[1], report.Options{}))
	require.Equal(t, d.Lines, both.Lines)
	turned := report.HoldCampaigns(report.Analyse(apart[1], report.Options{}), report.Analyse(apart[0], report.Options{}))
	require.InDelta(t, -*d.Lines[0].DifferenceKBps, *turned.Lines[0].DifferenceKBps, 1e-6)
	require.InDelta(t, *d.Lines[0].P, *turned.Lines[0].P, 1e-9)

	require.Empty(t, report.HoldCampaigns(report.Analyse(reporttest.Eventful(), report.Options{})).Lines, "one campaign")
}

// again is a run before it was merged.
func again(r report.Run) report.Run {
	s := *r.Sheet
	s.Cell.Settings, s.Cell.Label = nil, ""
	r.Sheet = &s
	return r
}
