package plan

import (
	"time"

	"linktrial/executor/runsheet"
	"linktrial/internal/unit"
	"linktrial/internal/yamlschema"
)

// metricKBps is how a required throughput may be written, beside a rate.
const metricKBps = "KB/s"

var (
	percentForm    = yamlschema.Quantity("%", 0, 100)
	ratioForm      = yamlschema.Quantity("%", 0, maxRatio)
	throughputForm = yamlschema.Either(yamlschema.Quantity(metricKBps, 0, maxKBps), yamlschema.Rate(0, maxKBps*8*unit.KB))
	delayForm      = yamlschema.Duration(minDelay, maxDelay)
)

// bound is a key of a metric that is required.
func bound(name string, form yamlschema.Form, required bool, example string) yamlschema.Key {
	k := yamlschema.Key{Name: name, Form: form, Required: required, Example: example, Meaning: map[string]string{"at_least": "The least value.", "at_most": "The greatest value."}[name]}
	if !required {
		k.Unset = "none"
	}
	return k
}

// required is a metric of a requirement, of which it has one.
func required(metric runsheet.Metric, example, beside, meaning string, keys ...yamlschema.Key) yamlschema.Key {
	k := yamlschema.Key{Name: string(metric), Form: yamlschema.Of(&yamlschema.Mapping{Name: string(metric), Inline: true, Keys: keys}), Unset: "another metric", Example: example, Beside: beside, Meaning: meaning}
	for _, m := range runsheet.Metrics {
		if m != metric {
			k.Instead = append(k.Instead, string(m))
		}
	}
	if !metric.OfProbes() {
		k.Instead = append(k.Instead, "probe")
	}
	return k
}

var requireKeys = &yamlschema.Mapping{Name: "requirements", Keys: []yamlschema.Key{
	{Name: "group", Form: yamlschema.Known("group"), Unset: "all groups", Example: "first", Meaning: "Group of the runs."},
	{Name: "radio", Form: yamlschema.OneOrMany(yamlschema.Known("radio"), maxCells), Unset: "all radios", Example: "prc-117g-anw2c", Meaning: "Radios of the runs."},
	{Name: "topology", Form: yamlschema.OneOrMany(yamlschema.Known("topology"), maxCells), Unset: "all topologies", Example: "vip-lot", Meaning: "Topologies of the runs."},
	{Name: "where", Form: conditionForm, Unset: "all runs", Example: "{size: 64 KiB}", Meaning: "Size and axes of the sweep of the runs. In a plan with groups it needs group, as each group has axes of its own."},
	{Name: "treatment", Form: yamlschema.OneOrMany(yamlschema.Known("treatment"), MaxTreatments), Unset: "every treatment, each by itself", Example: "cubic", Meaning: "Treatments of which it is required, each by itself. With probe: those beside whose transfers the probe runs, mixes too."},
	{Name: "probe", Form: yamlschema.Known("treatment"), Unset: "it is required of transfers", Example: "voice", Beside: "{loss: {at_most: 5 %}}", Instead: []string{"average", "delivered", "share_of_ideal", "share_of_coded_bound", "failures", "ratio_to", "delay_mean", "delay_p95", "delay_p99"},
		Meaning: "A probe, alone and beside each treatment, each by itself."},
	required(runsheet.MetricAverage, "{at_least: 100 KB/s}", "", "Average throughput of the valid trials. One bound or both.",
		bound("at_least", throughputForm, false, "100 KB/s"), bound("at_most", throughputForm, false, "1 Mbit/s")),
	required(runsheet.MetricDelivered, "{by: 120s, at_least: 95 %}", "", "Share of the trials, failed ones included, whose payload was there so long after the first attempt to connect.",
		yamlschema.Key{Name: "by", Form: yamlschema.Duration(time.Millisecond, maxDuration), Required: true, Example: "120s", Meaning: "Time since the first attempt to connect."}, bound("at_least", percentForm, true, "95 %")),
	required(runsheet.MetricIdeal, "{at_least: 60 %}", "", "Share of Ideal, averaged over the valid trials; on emulated radios.", bound("at_least", percentForm, true, "60 %")),
	required(runsheet.MetricCodedBound, "{at_least: 60 %}", "", "Share of the coded bound, averaged over the valid trials; on emulated radios.", bound("at_least", percentForm, true, "60 %")),
	required(runsheet.MetricFailures, "{at_most: 5 %}", "", "Share of the trials that failed, of the valid and the failed.", bound("at_most", percentForm, true, "5 %")),
	required(runsheet.MetricRatioTo, "{treatment: reno, at_least: 110 %}", "", "Throughput in percent of another treatment's, paired by iteration. at_least 110 %: better by 10 %; at_least 95 %: not worse by more than 5 % (non-inferiority); 95 % to 105 %: equivalent.",
		yamlschema.Key{Name: "treatment", Form: yamlschema.Known("treatment"), Required: true, Example: "reno", Meaning: "The other treatment."}, bound("at_least", ratioForm, false, "110 %"), bound("at_most", ratioForm, false, "120 %")),
	required(runsheet.MetricDelayMean, "{at_most: 150ms}", "{probe: voice}", "Mean one-way delay of a trial's packets, averaged over the trials.", bound("at_most", delayForm, true, "150ms")),
	required(runsheet.MetricDelayP95, "{at_most: 200ms}", "{probe: voice}", "95th percentile of a trial's one-way delays, averaged over the trials.", bound("at_most", delayForm, true, "200ms")),
	required(runsheet.MetricDelayP99, "{at_most: 400ms}", "{probe: voice}", "99th percentile of a trial's one-way delays, averaged over the trials.", bound("at_most", delayForm, true, "400ms")),
	required(runsheet.MetricLoss, "{at_most: 2 %}", "{probe: voice}", "Share of a trial's packets that were lost, averaged over the trials.", bound("at_most", percentForm, true, "2 %")),
}}
