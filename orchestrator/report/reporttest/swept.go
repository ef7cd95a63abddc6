package reporttest

import (
	"fmt"
	"time"

	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
	"linktrial/orchestrator/plan"
	"linktrial/orchestrator/report"
)

// Treatments as decola-2006 and lttcp-2006 compare them.
var (
	NewReno = Treatment{"newreno", "TCP-NewReno", "tcp", 1, ""}
	NewRTO  = Treatment{"radio-newrto", "TCP-radio-newRTO", "tcp", 1, ""}
	LTTCP   = Treatment{"lt-tcp", "LT-TCP", "lttcp", 0, "no driver of that name is installed"}
)

// On is a condition.
func On(axis, value string) plan.Condition { return plan.Condition{Axis: axis, Value: value} }

// Swept is a campaign of two groups: bandwidth × size × channel in the manner
// of decola-2006, and several flows and a mix in the manner of lttcp-2006.
func Swept() *report.Dataset {
	ds := Campaign()
	ds.Plan = "sweeps"
	addBandwidths(ds)
	addLosses(ds)
	ds.PublishedValues = sweptPublished()
	return ds
}

// addSwept adds a run of a group, of the conditions of a sweep.
func addSwept(ds *report.Dataset, r report.Run, group string, conditions ...plan.Condition) {
	r.Sheet.Cell.Index, r.Sheet.Cell.Group = len(ds.Runs), group
	r.Sheet.Cell.Label = report.ConditionText(conditions)
	for _, c := range conditions {
		r.Sheet.Cell.Settings = append(r.Sheet.Cell.Settings, runsheet.Setting{Axis: c.Axis, Parameter: c.Axis, Value: c.Value, Label: c.Value})
	}
	ds.Runs = append(ds.Runs, r)
}

// addBandwidths adds the group in the manner of decola-2006.
func addBandwidths(ds *report.Dataset) {
	for _, bandwidth := range []string{"16 kbit/s", "1 Mbit/s"} {
		rate := map[string]float64{"16 kbit/s": 16e3, "1 Mbit/s": 1e6}[bandwidth]
		for si, size := range []int64{3000, 100_000, 1_000_000} {
			for ci, channel := range []string{"long", "short"} {
				slow, quick := NewReno, NewRTO
				// A delay of 1 s each way, and losses that cost the one more than the other.
				full := float64(size) / (2 + float64(size)*8/rate) / 1024
				slow.KBps, quick.KBps = full*(0.5-0.12*float64(si))*(1+0.2*float64(ci)), full*(0.9-0.05*float64(si))
				r := NewRun(fmt.Sprintf("s-%d", len(ds.Runs)), "decola-radio", "decola radio", "point-to-point", "Point to point", size, 4, slow, quick, LTTCP)
				r.Sheet.Network = &radio.Network{MTUBytes: 1500, Links: []radio.Link{{A: radio.RoleClient, B: radio.RoleServer, RateBitsPerSecond: rate, Delay: time.Second}}}
				for i := range r.Trials {
					r.Trials[i].Attempts[0].Timeouts = Ptr(int64(3 - ci))
				}
				if bandwidth == "1 Mbit/s" && si == 2 && ci == 0 {
					Spoil(&r.Trials[0], "timed-out", "transfer-timeout", "", true)
				}
				addSwept(ds, r, "test-1", On("bandwidth", bandwidth), On("channel", channel))
			}
		}
	}
}

// addLosses adds the group in the manner of lttcp-2006, each run with a mix.
func addLosses(ds *report.Dataset) {
	for i, loss := range []string{"0", "0.05", "0.1"} {
		sack := Treatment{"sack", "TCP SACK", "tcp", 1000 / float64(1+3*i), ""}
		r := NewRun(fmt.Sprintf("l-%d", i), "bottleneck", "Bottleneck", "point-to-point", "Point to point", 1<<20, 3, sack, LTTCP)
		r.Sheet.Mixes = []runsheet.Mix{{Name: "five-and-five", Label: "5 SACK and 5 BBR"}, {Name: "with-lt", Label: "5 SACK and 5 LT-TCP", Missing: "LT-TCP: no driver of that name is installed"}}
		r.Sheet.Treatments = append(r.Sheet.Treatments, runsheet.Treatment{Name: "bbr", Label: "TCP BBR", Protocol: "tcp", Port: 5009})
		n := len(r.Trials)
		for k := range n {
			t := &r.Trials[k]
			Split(t, "sack", "sack", "sack")
			m := *t
			m.Attempts = append([]report.Attempt(nil), t.Attempts...)
			m.Index, m.Treatment = n+k, "five-and-five"
			Split(&m, "sack", "sack", "bbr", "bbr")
			r.Trials = append(r.Trials, m)
			mixed := runsheet.Trial{Index: n + k, Iteration: m.Iteration, Treatment: m.Treatment}
			for _, name := range []string{"sack", "sack", "bbr", "bbr"} {
				mixed.Flows = append(mixed.Flows, runsheet.Flow{Treatment: name, From: radio.RoleClient, To: radio.RoleServer, SizeBytes: 1 << 20})
			}
			r.Sheet.Trials = append(r.Sheet.Trials, mixed)
		}
		addSwept(ds, r, "loss", On("loss", loss))
	}
}

// sweptPublished has a published value of each form.
func sweptPublished() []plan.PublishedValue {
	half, few, change, at := 0.5, 0.04, -70.0, 0.3
	eighty := 80.0
	big := []plan.Condition{On("size", "1000000 B"), On("bandwidth", "1 Mbit/s")}
	return []plan.PublishedValue{
		{Group: "test-1", Where: big, Treatment: "radio-newrto", Metric: plan.MetricNormalised, Value: Ptr(0.61), Source: "decola-2006, section 6"},
		{Group: "test-1", Where: big, Treatment: plan.Ideal, Metric: plan.MetricNormalised, Value: Ptr(0.65), Source: "decola-2006, section 6"},
		{Group: "test-1", Where: big, Treatment: "lt-tcp", Metric: plan.MetricNormalised, Value: Ptr(0.6), Source: "decola-2006, section 6"},
		{Group: "test-1", Where: big, Treatment: "newreno", Metric: plan.MetricNormalised, AtLeast: &at, AtMost: &half, About: true, Source: "decola-2006, figure 9"},
		{Group: "test-1", Where: big, Treatment: "radio-newrto", Reference: "newreno", Metric: plan.MetricGain, AtLeast: &eighty, Source: "decola-2006, figure 17"},
		{Group: "test-1", Where: []plan.Condition{On("bandwidth", "1 Mbit/s")}, Metric: plan.MetricNormalised, Rises: "size", Source: "decola-2006, figure 9"},
		{Group: "test-1", Where: big, Metric: plan.MetricNormalised, Order: []string{"newreno", "lt-tcp", "radio-newrto"}, Source: "decola-2006, figure 9"},
		{Group: "loss", Where: []plan.Condition{On("loss", "0.1")}, RelativeTo: []plan.Condition{On("loss", "0")}, Treatment: "sack", Metric: plan.MetricMbitps, ChangePercent: &change, Source: "lttcp-2006, figure 3"},
		{Group: "loss", Treatment: "sack", Metric: plan.MetricMbitps, Best: Ptr(On("loss", "0")), Source: "lttcp-2006, figure 3"},
		{Group: "loss", Treatment: "sack", Metric: plan.MetricMbitps, Falls: "loss", Source: "lttcp-2006, figure 3"},
		{Group: "loss", Treatment: "sack", Metric: plan.MetricMbitps, FlatFrom: Ptr(On("loss", "0.05")), Source: "lttcp-2006, figure 3"},
		{Group: "loss", Where: []plan.Condition{On("loss", "0")}, Treatment: "bbr", Metric: plan.MetricFlowMbitps, Value: &few, Source: "lttcp-2006, section V"},
		{Group: "loss", Treatment: "sack", Metric: plan.MetricMbitps, Text: "SACK is dismal beyond 10 %.", Source: "lttcp-2006, section V"},
	}
}

// Split splits a trial's value among flows that ran one after another's start.
func Split(t *report.Trial, treatments ...string) {
	for k := range t.Attempts {
		a := &t.Attempts[k]
		a.Flows, a.Ideal, a.CodedBound, a.Digest = nil, 0, 0, ""
		for i, name := range treatments {
			share := a.SizeBytes * int64(i+1) * 2 / int64(len(treatments)*(len(treatments)+1))
			a.Flows = append(a.Flows, report.Flow{Treatment: name, Verdict: a.Verdict, Bound: a.Elapsed, Connect: 10 * time.Millisecond, Elapsed: a.Elapsed, SizeBytes: share})
		}
	}
}
