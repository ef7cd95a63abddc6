package report_test

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"linktrial/executor/journal"
	"linktrial/orchestrator/plan"
	"linktrial/orchestrator/report"
	"linktrial/orchestrator/report/reporttest"
)

// fades is a campaign on channels that fade: handshakes that last through a fade are
// in Ideal's time and not in the transfers', and of one treatment only the trials
// without a fade are valid.
func fades() *report.Dataset {
	ds := reporttest.Swept()
	for i := range ds.Runs {
		for k := range ds.Runs[i].Trials {
			t := &ds.Runs[i].Trials[k]
			a := &t.Attempts[0]
			if a.Ideal == 0 || a.Verdict != journal.Succeeded {
				continue
			}
			fade := time.Duration(t.Iteration%3) * 40 * time.Second
			a.Connect += fade
			a.Ideal, a.CodedBound = (a.Connect+a.Elapsed)*19/20, a.Connect+a.Elapsed*21/20
			if t.Treatment == "newreno" && fade > 0 && i%2 == 0 {
				reporttest.Spoil(t, journal.TimedOut, "connect-timeout", "", true)
			}
		}
	}
	return ds
}

// aboveIdeal are the points of a dataset that lie above their Ideal.
func aboveIdeal(ds *report.Dataset) (out []string, seen int) {
	a := report.Analyse(ds, report.Options{})
	beyond := func(ours, ideal float64) bool { return ours > ideal+1e-9*math.Abs(ideal) }
	for i := range a.Tables {
		for _, r := range a.Tables[i].Rows {
			if r.IdealKBps == nil {
				continue
			}
			seen++
			if beyond(*r.AverageKBps, *r.IdealKBps) || r.CodedBoundKBps != nil && beyond(*r.CodedBoundKBps, *r.IdealKBps) {
				out = append(out, fmt.Sprintf("table %s, %s: %v, Ideal %v", a.Tables[i].Run, r.Treatment, *r.AverageKBps, *r.IdealKBps))
			}
		}
	}
	charts := a.Charts()
	for _, axis := range a.SweptAxes() {
		for _, m := range []plan.Metric{plan.MetricKBps, plan.MetricKbitps, plan.MetricMbitps, plan.MetricNormalised, plan.MetricGain, report.MetricShareOfIdeal} {
			charts = append(charts, a.ChartsOf(m, axis)...)
		}
	}
	for _, c := range charts {
		for _, l := range c.Curves {
			for i := range l.Points {
				p := &l.Points[i]
				if slices.Contains(report.Bounds(), l.Treatment) && p.Known {
					out = append(out, fmt.Sprintf("%s over %s has one curve of %s for treatments of different trials", c.Metric, c.Axis, l.Treatment))
				}
				if !p.Known || math.IsNaN(p.Ideal) {
					continue
				}
				seen++
				if beyond(p.Mean, p.Ideal) || beyond(p.CodedBound, p.Ideal) {
					out = append(out, fmt.Sprintf("%s over %s, %s at %s: %v, Ideal %v", c.Metric, c.Axis, l.Treatment, c.Stations[i].Label, p.Mean, p.Ideal))
				}
			}
		}
	}
	return out, seen
}

func TestNoPointLiesAboveItsIdeal(t *testing.T) {
	all := reporttest.Datasets()
	all["fades"] = fades()
	for name, ds := range all {
		t.Run(name, func(t *testing.T) {
			above, seen := aboveIdeal(ds)
			for _, s := range above {
				t.Error(s)
			}
			if seen == 0 && slices.Contains([]string{"fades", "swept", "quickstart"}, name) {
				t.Error("no point has an Ideal")
			}
		})
	}
}

// An average and its Ideal are of the same trials: one without Ideal leaves both without it.
func TestIdealOfSomeTrialsStandsBesideNoAverage(t *testing.T) {
	ds := reporttest.Campaign(reporttest.Quickstart())
	first := report.Summarize(ds)[0].Rows[0]
	require.NotNil(t, first.IdealKBps)
	i := slices.IndexFunc(ds.Runs[0].Trials, func(x report.Trial) bool { return x.Treatment == first.Treatment })
	ds.Runs[0].Trials[i].Attempts[0].Ideal = 0
	require.Nil(t, report.Summarize(ds)[0].Rows[0].IdealKBps)
}
