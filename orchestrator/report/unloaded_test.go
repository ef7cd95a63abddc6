package report_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"linktrial/executor/journal"
	"linktrial/orchestrator/report"
	"linktrial/orchestrator/report/render"
	"linktrial/orchestrator/report/reporttest"
)

// Probes beside transfers that never connected are not under load: no value has them, and
// every output that shows the others says so.
func TestProbesBesideNothing(t *testing.T) {
	ds := reporttest.Probed()
	ds.Runs = ds.Runs[:1]
	run := &ds.Runs[0]
	whole := report.Summarize(ds)[0]
	before := whole.Probes
	spoilt := 0
	for i := range run.Trials {
		tr := &run.Trials[i]
		if tr.Treatment != reporttest.BBR.Name || tr.Iteration > 2 {
			continue
		}
		a := &tr.Attempts[len(tr.Attempts)-1]
		tr.Verdict, a.Verdict, a.Reason, a.Verified = journal.Failed, journal.Failed, "connect-refused", false
		if tr.Iteration == 2 {
			a.Connect = 0 // it never connected: the call had the radio for itself
		}
		spoilt++
	}
	require.Equal(t, 2, spoilt)
	row := func(rows []report.ProbeRow) report.ProbeRow {
		for _, r := range rows {
			if r.Beside == reporttest.BBR.Name {
				return r
			}
		}
		return report.ProbeRow{}
	}
	got := row(report.Summarize(ds)[0].Probes)
	require.Equal(t, []int{3, 2, 1, 1}, []int{got.Trials, got.Measured, got.Unloaded, got.FailedTransfers})
	require.Equal(t, whole.Partial, report.Summarize(ds)[0].Partial, "all of its trials have ended")
	require.NotEqual(t, *row(before).DelayMeanMS, *got.DelayMeanMS)

	for format, want := range map[string]string{
		"table": "1 of 3 left out, because no transfer beside it connected", "markdown": "1 of 3 left out, because no transfer beside it connected",
		"latex": "1 of 3 left out, because no transfer beside it connected", "delays-svg": "1 of 3 left out, because no transfer beside it connected",
		"probes-csv": "no transfer beside it connected", "json": `"unloaded":1`,
	} {
		f, err := render.As(ds, format, report.Options{})
		require.NoError(t, err)
		b, err := f.Content()
		require.NoError(t, err)
		text := strings.Join(strings.Fields(string(b)), " ")
		require.Contains(t, strings.ReplaceAll(text, `"unloaded": 1`, `"unloaded":1`), want, format)
	}
}
