package document

import (
	"slices"

	"linktrial/orchestrator/report"
)

// statisticsTable says how each kind of interval and P in the report is made, of those that it has.
func statisticsTable(v *report.Analysis) []Block {
	has := func(what func(*report.Row) bool) bool { return hasRow(v, what) }
	g := grid{caption: "How intervals and P are made", heads: []string{"Of", "Method"}, notes: []string{
		"Every interval has a level of 95 %. Comparisons are paired by iteration: the treatments of an iteration meet the same realisation of an emulated channel, and are close to each other in time.",
		"The conclusion of a run corrects for all pairs of treatments (Bonferroni), because which two lead shows only afterwards.",
	}}
	add := func(known bool, of, field string) {
		if known {
			g.add(of, report.Method(field))
		}
	}
	ratio := has(func(r *report.Row) bool { return r.Comparison != nil && r.Comparison.P != nil })
	add(has(func(r *report.Row) bool { return r.MeanCI != nil }), "average throughput, interval", "average_ci95_kb_per_s")
	add(has(func(r *report.Row) bool { return r.BootstrapCI != nil }), "average throughput, second interval", "average_bootstrap_ci95_kb_per_s")
	add(has(func(r *report.Row) bool { return r.FailedCI != nil }), "share of failed trials, interval", "failed_share_ci95")
	add(has(func(r *report.Row) bool { return r.Comparison != nil && r.Comparison.DifferenceCI != nil }), "difference of throughputs, interval", "difference_ci95_kb_per_s")
	add(has(func(r *report.Row) bool { return r.Comparison != nil && r.Comparison.DifferenceP != nil }), "difference of throughputs, P", "difference_t_p")
	add(has(func(r *report.Row) bool { return r.Comparison != nil && r.Comparison.RatioCI != nil }), "ratio of throughputs, interval", "ratio_ci95")
	add(ratio, "ratio of throughputs, P", "wilcoxon_p")
	add(has(func(r *report.Row) bool { return r.Comparison != nil && r.Comparison.GainCI != nil }), "gain, interval", "gain_ci95_percent")
	if has(report.HasDelivery) {
		g.add("share delivered by a time, interval", "score interval of Wilson, for this time alone")
		g.add("restricted mean of the time to delivery, interval", "Student's t, by Greenwood's variance")
	}
	if has(func(r *report.Row) bool {
		return r.Delivery != nil && r.Delivery.Difference != nil && r.Delivery.Difference.P != nil
	}) {
		g.add("difference of times to delivery, interval and P", "Student's t for pairs")
	}
	if slices.ContainsFunc(v.Tables, func(t report.RunTable) bool { return t.Stopping != nil }) {
		g.add("ratio of times to delivery under a rule to stop by, interval", "repeated confidence interval (Jennison and Turnbull 1989), by signed-rank tests whose level is spent over the looks; the estimate is median-unbiased where the rule decided before its last look")
	}
	add(len(report.HoldRuns(v)) > 0, "ratio over runs, interval", "mean_ratio_ci95")
	add(hasProbe(v, func(r *report.ProbeRow) bool { return r.DelayMeanCI != nil }), "mean delay of a probe, interval", "delay_mean_ci95_ms")
	add(slices.ContainsFunc(v.Tables, func(t report.RunTable) bool { return len(t.Requirements) > 0 }), "value of a requirement, interval", "ci95")
	if ratio {
		g.notes = append(g.notes, "P of the ratio is corrected after Holm for the comparisons of its run with the reference, where a table says so; intervals are not.")
	}
	return g.blocks()
}
