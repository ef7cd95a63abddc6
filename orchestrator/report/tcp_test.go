package report_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
	"linktrial/orchestrator/report"
	"linktrial/orchestrator/report/reporttest"
	"linktrial/protocols/contract"
)

// The numbers are computed by hand.
func TestRFC6349(t *testing.T) {
	n := reporttest.Ptr[int64]
	for name, c := range map[string]struct {
		a                 report.Attempt
		efficiency, delay *float64
	}{
		"RFC 6349, section 4.2.1": {report.Attempt{TransmittedBytes: n(102_000), RetransmittedBytes: n(2000)}, reporttest.Ptr(98.0392157), nil},
		"RFC 6349, section 4.3.1": {report.Attempt{RTTMeanUS: reporttest.Ptr(32_000.0), RTTLeastUS: n(25_000)}, nil, reporttest.Ptr(28.0)},
		"nothing sent":            {report.Attempt{TransmittedBytes: n(0), RetransmittedBytes: n(0), RTTMeanUS: reporttest.Ptr(1.0), RTTLeastUS: n(0)}, nil, nil},
		"more again than in all":  {report.Attempt{TransmittedBytes: n(10), RetransmittedBytes: n(11)}, nil, nil},
		"one of both":             {report.Attempt{TransmittedBytes: n(10), RTTMeanUS: reporttest.Ptr(1.0)}, nil, nil},
	} {
		assert.Equal(t, c.efficiency, c.a.EfficiencyPercent(), name)
		assert.Equal(t, c.delay, (&report.RunTable{}).BufferDelayPercent(&c.a), name)
	}
}

func TestTransferTimeRatio(t *testing.T) {
	ds := reporttest.Probed()
	search := -1
	for i := range ds.Runs {
		for k := range report.Analyse(ds, report.Options{}).Tables[i].Probes {
			if report.Analyse(ds, report.Options{}).Tables[i].Probes[k].Capacity != nil {
				search = i
			}
		}
	}
	require.GreaterOrEqual(t, search, 0)
	run := &ds.Runs[search]
	for i := range run.Trials {
		if run.Trials[i].Treatment != "tcp-cubic" {
			continue
		}
		a := &run.Trials[i].Attempts[0]
		a.Ideal, a.SizeBytes, a.Connect, a.Elapsed = 0, 1<<20, time.Second, 9*time.Second
	}
	table := report.Analyse(ds, report.Options{}).Tables[search]
	var capacity float64
	for _, p := range table.Probes {
		if p.Capacity != nil {
			capacity = *p.Capacity.MaximumBPS
			require.EqualValues(t, 1472, p.Capacity.LargestPayloadBytes, "the path's MTU is 1500")
		}
	}
	for _, row := range table.Rows {
		if row.Treatment != "tcp-cubic" {
			continue
		}
		require.NotNil(t, row.RFC6349)
		assert.Equal(t, report.IdealOfCapacity, row.RFC6349.IdealFrom)
		// 1460 of 1500 bytes are payload; connecting is in neither time.
		assert.InDelta(t, 9/(8*float64(1<<20)/(capacity*1460/1500)), *row.RFC6349.TransferTimeRatio.Mean, 1e-6)
	}

	// Without a search and without Ideal there is no ideal time; with Ideal, connecting counts.
	a := &report.Attempt{Attempt: 1, Verdict: "succeeded", Verified: true, SizeBytes: 1 << 20, Connect: time.Second, Elapsed: 9 * time.Second}
	none := &report.RunTable{}
	ratio, from := none.TransferTimeRatio(a)
	assert.Nil(t, ratio)
	assert.Empty(t, from)
	a.Ideal = 4 * time.Second
	ratio, from = none.TransferTimeRatio(a)
	assert.InDelta(t, 2.5, *ratio, 1e-9)
	assert.Equal(t, report.IdealOfRadio, from)
	a.Verdict = "failed"
	ratio, _ = none.TransferTimeRatio(a)
	assert.Nil(t, ratio)
}

// A probe alone in both directions is the baseline: the least of its trials, whatever the
// clocks. What loads the path, has one direction or moved clocks is none.
func TestBaseline(t *testing.T) {
	table := report.Analyse(reporttest.ProbedBothWays(), report.Options{}).Tables[0]
	require.NotNil(t, table.Baseline)
	assert.Equal(t, []any{50.0, "idle", "Small packets", 4, time.Date(2026, 3, 1, 12, 1, 0, 0, time.UTC)},
		[]any{*table.Baseline.RTTMS, table.Baseline.Probe, table.Baseline.Label, table.Baseline.Trial, table.Baseline.At})
	x := table.Rows[0].RFC6349
	require.NotNil(t, x)
	assert.Equal(t, report.BaselineOfProbe, x.BaselineFrom)
	assert.Equal(t, []float64{50, 50, 50}, []float64{*x.BufferDelayPercent.Mean, *x.BufferDelayPercent.Least, *x.BufferDelayPercent.Largest}, "75 ms over 50 ms")
	assert.InDelta(t, 20.0, *x.LeastAboveBaselinePercent.Mean, 1e-9, "60 ms over 50 ms")

	attempt := func(ds *report.Dataset, trial int) *report.Attempt { return &ds.Runs[0].Trials[trial].Attempts[0] }
	for name, spoil := range map[string]func(a *report.Attempt){
		"one direction": func(a *report.Attempt) { a.Probes = a.Probes[:1] },
		"a search": func(a *report.Attempt) {
			a.Probes[1].Metrics.Capacity = &contract.Capacity{HeldDelay: &contract.Delays{}}
		},
		"no packet came":   func(a *report.Attempt) { a.Probes[1].Metrics.Delay = nil },
		"a failed probe":   func(a *report.Attempt) { a.Probes[0].Verdict = journal.Failed },
		"a moved clock":    func(a *report.Attempt) { a.Probes[0].Metrics.ClockStepNS = 1e6 },
		"nothing sensible": func(a *report.Attempt) { a.Probes[1].Metrics.Delay.MinNS = -10e9 },
	} {
		ds := reporttest.ProbedBothWays()
		spoil(attempt(ds, 4))
		got := report.Analyse(ds, report.Options{}).Tables[0].Baseline
		require.NotNil(t, got, name)
		assert.Equal(t, 3, got.Trial, "%s: the next one of 60 ms", name)
		for _, trial := range []int{3, 5} {
			spoil(attempt(ds, trial))
		}
		table := report.Analyse(ds, report.Options{}).Tables[0]
		assert.Nil(t, table.Baseline, name)
		x := table.Rows[0].RFC6349
		assert.Equal(t, report.BaselineOfTransfer, x.BaselineFrom, name)
		assert.InDelta(t, 25.0, *x.BufferDelayPercent.Mean, 1e-9, "%s: 75 ms over 60 ms, as without probes", name)
		assert.Nil(t, x.LeastAboveBaselinePercent, name)
	}
	beside := reporttest.ProbedBothWays()
	for i := 3; i < 6; i++ {
		beside.Runs[0].Sheet.Trials[i].Flows = []runsheet.Flow{{Treatment: reporttest.Cubic.Name, From: radio.RoleClient, To: radio.RoleServer, SizeBytes: 1 << 20}}
		beside.Runs[0].Sheet.Trials[i].Treatment = reporttest.Cubic.Name
	}
	assert.Nil(t, report.Analyse(beside, report.Options{}).Tables[0].Baseline, "beside a transfer there is load")
}
