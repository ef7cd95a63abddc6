package reporttest

import (
	"time"

	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
	"linktrial/orchestrator/report"
)

// Required is a campaign of two runs whose plan has requirements: every metric, and each
// outcome.
func Required() *report.Dataset {
	files := NewRun("r-1", "prc-117g-anw2c", "AN/PRC-117G, ANW2C", "vip-lot", "VIP Lot", 256<<10, 10, Cubic, UDT, Haul)
	Spoil(&files.Trials[1], journal.TimedOut, "transfer-timeout", "", true)
	files.Sheet.Require = []runsheet.Requirement{
		{Entry: 1, Metric: runsheet.MetricAverage, Treatment: UDT.Name, AtLeast: Ptr(100.)},
		{Entry: 2, Metric: runsheet.MetricAverage, Treatment: Cubic.Name, AtLeast: Ptr(100.), AtMost: Ptr(500.)},
		{Entry: 3, Metric: runsheet.MetricDelivered, Treatment: Cubic.Name, By: 2 * time.Minute, AtLeast: Ptr(0.7)},
		{Entry: 3, Metric: runsheet.MetricDelivered, Treatment: UDT.Name, By: 2 * time.Minute, AtLeast: Ptr(0.7)},
		{Entry: 4, Metric: runsheet.MetricIdeal, Treatment: UDT.Name, AtLeast: Ptr(0.75)},
		{Entry: 5, Metric: runsheet.MetricCodedBound, Treatment: UDT.Name, AtLeast: Ptr(0.7)},
		{Entry: 6, Metric: runsheet.MetricFailures, Treatment: UDT.Name, AtMost: Ptr(0.3)},
		{Entry: 7, Metric: runsheet.MetricRatioTo, Treatment: UDT.Name, Reference: Cubic.Name, AtLeast: Ptr(1.1)},
		{Entry: 8, Metric: runsheet.MetricAverage, Treatment: Haul.Name, AtLeast: Ptr(100.)},
	}
	calls := Probed().Runs[1]
	calls.ID = "r-2"
	for k, m := range []runsheet.Metric{runsheet.MetricDelayMean, runsheet.MetricDelayP95, runsheet.MetricDelayP99} {
		calls.Sheet.Require = append(calls.Sheet.Require, runsheet.Requirement{Entry: 9 + k, Metric: m, Probe: "voice", From: radio.RoleClient, AtMost: Ptr(200.)})
	}
	calls.Sheet.Require = append(calls.Sheet.Require, runsheet.Requirement{Entry: 12, Metric: runsheet.MetricLoss, Probe: "voice", From: radio.RoleClient, Treatment: BBR.Name, AtMost: Ptr(0.02)})
	return Campaign(files, calls)
}
