package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"linktrial/internal/unit"
	"linktrial/orchestrator/plan"
	"linktrial/orchestrator/report/wording"
)

// MetricShareOfIdeal and MetricShareOfCodedBound are the means of a bound's time over
// the time taken. No paper publishes them; charts have them beside the metrics of plans.
const (
	MetricShareOfIdeal      plan.Metric = "share-of-ideal"
	MetricShareOfCodedBound plan.Metric = "share-of-coded-bound"
)

// metricNames are what tables and axes call a metric.
var metricNames = map[plan.Metric]struct{ short, long string }{
	plan.MetricNormalised:   {"normalised", "normalised throughput"},
	plan.MetricGain:         {"gain %", "gain (%)"},
	plan.MetricKBps:         {"KB/s", "throughput (KB/s)"},
	plan.MetricKbitps:       {"kbit/s", "throughput (kbit/s)"},
	plan.MetricMbitps:       {"Mbit/s", "throughput (Mbit/s)"},
	plan.MetricFlowMbitps:   {"Mbit/s a flow", "throughput of a flow (Mbit/s)"},
	plan.MetricTimeouts:     {"timeouts", "timeouts"},
	plan.MetricCompleted:    {"completed", "share of trials completed"},
	MetricShareOfIdeal:      {"of Ideal", "share of Ideal"},
	MetricShareOfCodedBound: {"of coded", "share of the coded bound"},
}

func shortName(m plan.Metric) string {
	if n, ok := metricNames[m]; ok {
		return n.short
	}
	return wording.Clean(string(m))
}

// MetricTitle is what an axis of the metric is called.
func MetricTitle(m plan.Metric) string {
	if n, ok := metricNames[m]; ok {
		return n.long
	}
	return wording.Clean(string(m))
}

// inUnit brings a published value into the metric's unit, and reports whether
// that is possible.
func inUnit(f *plan.PublishedValue, m plan.Metric) bool {
	if f.Metric == m {
		return true
	}
	bytesPerSecond := map[plan.Metric]float64{plan.MetricKBps: unit.KB, plan.MetricKbitps: 1e3 / 8, plan.MetricMbitps: 1e6 / 8}
	from, to := bytesPerSecond[f.Metric], bytesPerSecond[m]
	if from == 0 || to == 0 {
		return false
	}
	f.Metric = m
	for _, x := range []**float64{&f.Value, &f.AtLeast, &f.AtMost} {
		if *x != nil {
			*x = Rounded(**x * from / to)
		}
	}
	return true
}

// statement is what is published, for people.
func statement(f *plan.PublishedValue, labels map[string]string) string {
	about := map[bool]string{true: "about "}[f.About]
	switch {
	case f.Text != "":
		return f.Text
	case f.Value != nil:
		return about + wording.Short(f.Value)
	case f.AtLeast != nil && f.AtMost != nil:
		return about + wording.Short(f.AtLeast) + " to " + wording.Short(f.AtMost)
	case f.AtLeast != nil:
		return "at least " + about + wording.Short(f.AtLeast)
	case f.AtMost != nil:
		return "at most " + about + wording.Short(f.AtMost)
	case f.ChangePercent != nil:
		from := slices.DeleteFunc(slices.Clone(f.RelativeTo), func(c plan.Condition) bool { return slices.Contains(f.Where, c) })
		return fmt.Sprintf("%s%s from %s", about, wording.Deviation(f.ChangePercent), ConditionText(from))
	case f.Best != nil:
		return "best at " + f.Best.Axis + " " + f.Best.Value
	case f.Falls != "":
		return "falls with " + f.Falls
	case f.Rises != "":
		return "rises with " + f.Rises
	case f.FlatFrom != nil:
		return "flat from " + f.FlatFrom.Axis + " " + f.FlatFrom.Value
	}
	names := make([]string, len(f.Order))
	for i, n := range f.Order {
		names[i] = cmp.Or(labels[n], n)
	}
	return strings.Join(names, " < ")
}

// PublishedText is a published value or its bounds.
func PublishedText(f *plan.PublishedValue) string {
	switch {
	case f.Value != nil:
		return wording.Short(f.Value)
	case f.AtMost == nil:
		return "≥ " + wording.Short(f.AtLeast)
	case f.AtLeast == nil:
		return "≤ " + wording.Short(f.AtMost)
	}
	return wording.Short(f.AtLeast) + " to " + wording.Short(f.AtMost)
}
