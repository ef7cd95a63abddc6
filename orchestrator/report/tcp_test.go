package report_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"linktrial/orchestrator/report"
	"linktrial/orchestrator/report/reporttest"
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
		assert.Equal(t, c.delay, c.a.BufferDelayPercent(), name)
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
