package report_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"linktrial/orchestrator/report"
	"linktrial/orchestrator/report/reporttest"
)

// withTelemetry gives each attempt of a run the mean that value returns of its place among
// those of its treatment.
func withTelemetry(r *report.Run, metric string, value func(treatment string, i int) float64) {
	count := map[string]int{}
	for i := range r.Trials {
		t := &r.Trials[i]
		for k := range t.Attempts {
			x := value(t.Treatment, count[t.Treatment])
			count[t.Treatment]++
			t.Attempts[k].Telemetry = append(t.Attempts[k].Telemetry, report.Telemetry{Node: "client", Source: "radio", Metric: metric, Unit: "dB", Minimum: x, Mean: x, Maximum: x})
		}
	}
}

// TestUnusualReadings: readings beyond the range of their treatment are found, and no others.
func TestUnusualReadings(t *testing.T) {
	run := reporttest.NewRun("r", "radio", "Radio", "hill", "Hill", 1<<20, 10, reporttest.Cubic, reporttest.BBR)
	last := run.Sheet.Treatments[1].Name
	// The median is 11, the median deviation 1: usual is 11 ± 3.5 · 1/0.6745.
	withTelemetry(&run, "snr", func(treatment string, i int) float64 {
		switch {
		case treatment == last && i == 4:
			return 5.8
		case treatment == last && i == 5:
			return 16.1 // within
		}
		return []float64{10, 11, 11, 12, 11, 10, 12, 11, 11, 12}[i]
	})
	// Each treatment has a rate of its own, which is usual.
	withTelemetry(&run, "in_bytes", func(treatment string, i int) float64 { return float64(1000*len(treatment) + i) })
	v := report.Analyse(reporttest.Campaign(run), report.Options{})
	got := v.UnusualReadings(&v.Dataset.Runs[0])
	require.Len(t, got, 1)
	require.Equal(t, last, got[0].Treatment)
	require.Equal(t, "snr", got[0].Telemetry.Metric)
	value, usual := got[0].Texts()
	require.Equal(t, [2]string{"5.80", "5.81 to 16.19"}, [2]string{value, usual})

	left := report.Analyse(reporttest.Campaign(run), report.Options{LeaveOut: []string{last}})
	require.Empty(t, left.UnusualReadings(&left.Dataset.Runs[0]))
}

// TestUsualIsUnknown: of fewer readings, or where all are the same, nothing is unusual.
func TestUsualIsUnknown(t *testing.T) {
	few := reporttest.NewRun("r", "radio", "Radio", "hill", "Hill", 1<<20, report.LeastReadings-1, reporttest.Cubic)
	withTelemetry(&few, "snr", func(_ string, i int) float64 { return []float64{1, 1000}[min(i, 1)] * float64(i) })
	same := reporttest.NewRun("s", "radio", "Radio", "hill", "Hill", 1<<20, 20, reporttest.Cubic)
	withTelemetry(&same, "snr", func(string, int) float64 { return 12.5 })
	v := report.Analyse(reporttest.Campaign(few, same), report.Options{})
	for i := range v.Dataset.Runs {
		require.Empty(t, v.UnusualReadings(&v.Dataset.Runs[i]))
	}
}
