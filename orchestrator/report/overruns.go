package report

import (
	"cmp"
	"fmt"
	"slices"

	"linktrial/internal/stats"
	"linktrial/orchestrator/report/wording"
)

// OverRuns holds treatments against each other over runs that differ in radio, topology or
// campaign alone: over places or days, which the runs are a sample of.
type OverRuns struct {
	Runs   []string `json:"runs"`
	Metric string   `json:"metric"` // "throughput", or "time to delivery" where shares of failures differ in a run
	// Conclusion is of the two leading treatments, for people; its interval is corrected for
	// all pairs of treatments.
	Conclusion string `json:"conclusion"`
	// Comparisons are those with the reference, whose intervals are of one comparison each.
	Comparisons []RunsComparison `json:"comparisons"`
}

// RunsComparison is a treatment against the reference over runs ([stats.OverRuns]).
type RunsComparison struct {
	Reference string `json:"reference"`
	Value     string `json:"value"`
	Runs      int    `json:"runs"`
	Pairs     int    `json:"pairs"` // iterations in which both have a value, of all runs
	// MeanRatio is value / reference: the geometric mean over runs of their geometric means.
	MeanRatio   *float64 `json:"mean_ratio"`
	MeanRatioCI *Range   `json:"mean_ratio_ci95"`
	// The variances of the natural logarithm of the ratio, between runs and between the
	// iterations of one, and how much of the variance of the mean is between runs.
	VarianceBetween *float64 `json:"log_ratio_variance_between_runs"`
	VarianceWithin  *float64 `json:"log_ratio_variance_within_runs"`
	BetweenShare    *float64 `json:"between_runs_share"`
	// MoreRuns is about how many would decide the comparison; absent: it is decided, or that
	// cannot be said.
	MoreRuns int `json:"more_runs,omitempty"`
}

const (
	// leastOverRuns is the fewest runs of which anything is said.
	leastOverRuns = 3
	// mostOverRuns is for how many sets of runs people read a sentence.
	mostOverRuns = 10
)

// HoldRuns holds treatments against each other over runs, for each set of at least three
// runs in the analyses that have ended, whatever radio, topology and campaign they are of.
func HoldRuns(all ...*Analysis) (out []OverRuns) {
	for _, set := range runSets(all) {
		if len(set.runs) < leastOverRuns {
			continue
		}
		if o := set.hold(); o != nil {
			o.Comparisons = without(o.Comparisons, func(c *RunsComparison) bool {
				return slices.ContainsFunc(all, func(v *Analysis) bool { return v.leavesOut(c.Reference) || v.leavesOut(c.Value) })
			})
			out = append(out, *o)
		}
	}
	return out
}

// overRunsLegend says of all conclusions over runs how they are made.
const overRunsLegend = "Over runs: each run's mean ratio, by iteration, counts alike. The interval is Student's t of these means, with runs as a sample of such places or days, and corrected for all pairs of treatments (Bonferroni). More runs reduce the variance between runs, more iterations do not."

// OverRunsTexts are the conclusions over runs, for people, and how they are made.
func OverRunsTexts(sets []OverRuns) (texts []string) {
	for i := range sets[:min(len(sets), mostOverRuns)] {
		texts = append(texts, sets[i].Conclusion)
	}
	if more := len(sets) - mostOverRuns; more > 0 {
		texts = append(texts, wording.Plural(more, "more conclusion over runs is", "more conclusions over runs are")+" in results.json.")
	}
	if len(texts) > 0 {
		texts = append(texts, overRunsLegend)
	}
	return texts
}

// hold is the set's comparisons; nil where fewer than two treatments have values in all runs,
// or fewer than three runs have pairs of the leading two.
func (set *runSet) hold() *OverRuns {
	o := &OverRuns{Metric: "throughput", Comparisons: []RunsComparison{}}
	for _, s := range set.runs {
		o.Runs = append(o.Runs, s.run.ID)
		if rows := soonest(&s.table, s.run.isMix); len(rows) > 1 && failuresDiffer(&s.table, rows) {
			o.Metric = "time to delivery"
		}
	}
	values := func(s *sample) map[int]float64 { return s.by(rateOf) }
	if o.Metric != "throughput" {
		values = (*sample).restricted
	}
	h := set.shared(values)
	if len(h.names) < 2 {
		return nil
	}
	if o.Conclusion = h.conclude(set, o.Metric == "throughput"); o.Conclusion == "" {
		return nil
	}
	ref := max(0, slices.Index(h.names, set.runs[0].table.Reference))
	for i := range h.names {
		if i != ref {
			o.Comparisons = append(o.Comparisons, h.against(i, ref))
		}
	}
	return o
}

// held is one treatment against another, as one of so many comparisons.
func (h *heldRuns) held(value, reference, comparisons int) stats.OverRuns {
	runs := make([][]stats.Pair, len(h.values[value]))
	for k := range runs {
		runs[k] = stats.PairUp(h.values[reference][k], h.values[value][k])
	}
	return stats.CompareOverRuns(runs, level, comparisons)
}

func (h *heldRuns) against(value, reference int) RunsComparison {
	x := h.held(value, reference, 1)
	return RunsComparison{Reference: h.names[reference], Value: h.names[value], Runs: x.Runs, Pairs: x.Pairs,
		MeanRatio: Rounded(x.Ratio), MeanRatioCI: interval(x.Interval), VarianceBetween: Rounded(x.Between), VarianceWithin: Rounded(x.Within),
		BetweenShare: Rounded(x.BetweenShare), MoreRuns: x.More}
}

// leading are the two treatments with the best means over the runs.
func (h *heldRuns) leading(larger bool) (best, next int) {
	order := make([]int, len(h.names))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		if larger {
			a, b = b, a
		}
		return cmp.Compare(h.means[a], h.means[b])
	})
	return order[0], order[1]
}

// conclude is the sentence over the two leading treatments. Which these are shows only
// afterwards, as in a run. Empty where too few runs have iterations in which both have a value.
func (h *heldRuns) conclude(set *runSet, throughput bool) string {
	pairs := len(h.names) * (len(h.names) - 1) / 2
	best, next := h.leading(throughput)
	x := h.held(best, next, pairs)
	if x.Ratio != 1 && x.Ratio > 1 != throughput { // by the iterations that both have
		best, next = next, best
		x = h.held(best, next, pairs)
	}
	if !x.Interval.Defined() {
		return ""
	}
	begin, second := fmt.Sprintf("over %s (%s)", wording.Plural(x.Runs, "run", "runs"), set.where()), h.labels[next]
	if set.open > 0 {
		begin = "so far, " + begin
	}
	if n := len(h.names); n > 2 {
		begin, second = fmt.Sprintf("%s, of %d treatments,", begin, n), "the next, "+second
	} else {
		begin += ","
	}
	leads, note := "has %s times the throughput of %s", ""
	if !throughput {
		leads, note = "takes %s of the time to delivery of %s", " Shares of failures differ, so this is over the time to delivery of all trials; one that failed counts as the horizon."
	}
	text := fmt.Sprintf("%s %s "+leads+" (%s to %s at 95 %%): %s%s.",
		begin, h.labels[best], wording.Number(&x.Ratio), second, wording.Number(&x.Interval.Low), wording.Number(&x.Interval.High), decision(x.Decided), lackingRuns(&x))
	if share := Rounded(x.BetweenShare); share != nil {
		text += fmt.Sprintf(" %.0f %% of the variance of this mean is between runs.", 100**share)
	}
	return wording.Sentence(text + note + set.leftOut(h.differ))
}

// lackingRuns is what a comparison lacks that is not decided.
func lackingRuns(x *stats.OverRuns) (text string) {
	switch {
	case x.More > stats.ManyMore:
		text = fmt.Sprintf("; more than %d more runs would be needed", stats.ManyMore)
	case x.More > 0:
		text = fmt.Sprintf("; about %s would be needed", wording.Plural(x.More, "more run", "more runs"))
	default:
		return ""
	}
	if !x.IterationsDecide {
		text += ", and more iterations of these would not decide it"
	}
	return text
}
