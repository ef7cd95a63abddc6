package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"linktrial/orchestrator/report/wording"
	"linktrial/orchestrator/stats"
)

// conclude is the sentence over a run's comparison: by how much the treatment with the
// highest average leads the next one, whether the trials decide it, and about how many
// more iterations would. Empty where fewer than two treatments have values. Which two
// these are shows only afterwards, so that each pair of treatments counts as a
// comparison of its own. Mixes are left out: their trials have more flows.
//
// Averages are over the trials that succeeded. Where shares of failures differ, a treatment
// that gives up in the hard moments has the higher one: then the conclusion is over the time
// to delivery ([concludeDelivery]).
func conclude(t *RunTable, samples []sample, isMix func(string) bool) (string, Lead) {
	if ranks := soonest(t, isMix); len(ranks) > 1 && failuresDiffer(t, ranks) {
		return concludeDelivery(t, samples, ranks)
	}
	ranks := ranked(t, isMix)
	if len(ranks) < 2 {
		return "", Lead{}
	}
	best, next, all := ranks[0], ranks[1], len(ranks)*(len(ranks)-1)/2
	judge := func(best, next int) stats.Decision {
		return stats.Decide(stats.PairUp(samples[next].by(rateOf), samples[best].by(rateOf)), level, all)
	}
	d, though := judge(best, next), ""
	if d.Ratio < 1 {
		best, next, though = next, best, ", though its average is lower"
		d = judge(best, next)
	}
	leader, second := wording.Clean(t.Rows[best].Label), wording.Clean(t.Rows[next].Label)
	if d.Pairs < minPairs {
		text := fmt.Sprintf("%s and %s are not compared: %s valid values of both, and a comparison takes %d", leader, second, wording.Plural(d.Pairs, "iteration has", "iterations have"), minPairs)
		return text + ".", Lead{Text: text}
	}
	noise := !d.Decided && d.More == 0
	decided := decision(d.Decided)
	by := strings.TrimPrefix(wording.Change(d.Ratio), "+")
	short := Lead{Text: fmt.Sprintf("%s leads %s by %s: %s", leader, second, by, decided), Leader: leader, Decided: d.Decided}
	if noise {
		short = Lead{Text: fmt.Sprintf("%s is within noise of %s", leader, second)}
	}
	var b strings.Builder
	second = begin(&b, t, len(ranks), second, noise)
	if noise {
		though = ""
		fmt.Fprintf(&b, "%s is within noise of %s", leader, second)
	} else {
		fmt.Fprintf(&b, "%s leads %s by %s", leader, second, by)
	}
	fmt.Fprintf(&b, "%s (%s)", though, basis(&d, noise))
	end(&b, d.Decided, d.P, d.More, all, d.Interval.Defined())
	return wording.Sentence(b.String()), short
}

func decision(decided bool) string { return map[bool]string{false: "not "}[decided] + "decided" }

// begin writes what precedes the leader, and returns how the second one is named.
func begin(b *strings.Builder, t *RunTable, ranks int, second string, noise bool) string {
	if t.Partial {
		b.WriteString("So far: ")
	}
	if ranks < 3 {
		return second
	}
	fmt.Fprintf(b, "of %d treatments, ", ranks)
	if second = "the next, " + second; !noise {
		second += ","
	}
	return second
}

// end writes the decision, what it lacks, and for how many comparisons it is corrected.
func end(b *strings.Builder, decided bool, p float64, more, all int, interval bool) {
	fmt.Fprintf(b, ": %s (p %s)", decision(decided), strings.Replace("= "+wording.PValue(&p), "= <", "< ", 1))
	switch {
	case more > stats.ManyMore:
		fmt.Fprintf(b, "; more than %d more iterations would be needed", stats.ManyMore)
	case more > 0:
		fmt.Fprintf(b, "; about %s would be needed", wording.Plural(more, "more iteration", "more iterations"))
	}
	b.WriteString(".")
	if all > 1 {
		corrected := map[bool]string{true: "Interval and p are", false: "p is"}[interval]
		fmt.Fprintf(b, " %s corrected for the %d pairs of treatments (Bonferroni).", corrected, all)
	}
}

// concludeDelivery is [conclude] by the restricted mean of the time to delivery, in which
// every iteration counts in which both treatments tell of their protocol.
func concludeDelivery(t *RunTable, samples []sample, ranks []int) (string, Lead) {
	best, next, all := ranks[0], ranks[1], len(ranks)*(len(ranks)-1)/2
	judge := func(best, next int) stats.Sooner {
		return stats.DecideSooner(samples[next].waits(), samples[best].waits(), samples[best].horizon, level, all)
	}
	d, though := judge(best, next), ""
	if d.Difference < 0 {
		best, next, though = next, best, ", though not over all trials"
		d = judge(best, next)
	}
	leader, second := wording.Clean(t.Rows[best].Label), wording.Clean(t.Rows[next].Label)
	if d.Pairs < minPairs {
		text := fmt.Sprintf("%s and %s are not compared: %s an outcome of both, and a comparison takes %d", leader, second, wording.Plural(d.Pairs, "iteration has", "iterations have"), minPairs)
		return text + ".", Lead{Text: text}
	}
	noise := !d.Decided && d.More == 0
	sooner := wording.Number(&d.Difference) + " s"
	short := Lead{Text: fmt.Sprintf("%s delivers %s sooner than %s: %s", leader, sooner, second, decision(d.Decided)), Leader: leader, Decided: d.Decided}
	var b strings.Builder
	called := begin(&b, t, len(ranks), second, noise)
	by := fmt.Sprintf("restricted mean up to %s s, paired t, %s", wording.Short(&samples[best].horizon), wording.Plural(d.Pairs, "iteration", "iterations"))
	if d.Interval.Defined() {
		by = strings.ReplaceAll(wording.Number(&d.Interval.Low)+" to "+wording.Number(&d.Interval.High), "-", "−") + " s at 95 %, " + by
	}
	if noise {
		short = Lead{Text: fmt.Sprintf("%s delivers within noise of %s", leader, second)}
		fmt.Fprintf(&b, "%s delivers within noise of %s (%s, %s)", leader, called, sooner, by)
	} else {
		fmt.Fprintf(&b, "%s delivers %s sooner than %s%s (%s)", leader, sooner, strings.TrimSuffix(called, ","), though, by)
	}
	end(&b, d.Decided, d.P, d.More, all, d.Interval.Defined())
	fmt.Fprintf(&b, " Shares of failures differ, so this is over the time to delivery of all trials; averages leave out those that failed: %s.", failedOf(t, ranks))
	return wording.Sentence(b.String()), short
}

// mostFailed is how many treatments [failedOf] names.
const mostFailed = 4

// failedOf names the treatments that failed most, with their trials.
func failedOf(t *RunTable, rows []int) string {
	rows = slices.DeleteFunc(slices.Clone(rows), func(i int) bool { return t.Rows[i].Failed == 0 })
	slices.SortStableFunc(rows, func(a, b int) int { return cmp.Compare(*t.Rows[b].FailedShare, *t.Rows[a].FailedShare) })
	var parts []string
	for _, i := range rows[:min(len(rows), mostFailed)] {
		r := &t.Rows[i]
		parts = append(parts, fmt.Sprintf("%s %d of %d", wording.Clean(r.Label), r.Failed, r.Valid+r.Failed))
	}
	if more := len(rows) - mostFailed; more > 0 {
		parts = append(parts, wording.Plural(more, "more treatment", "more treatments"))
	}
	return strings.Join(parts, ", ")
}

// soonest is the rows that have a time to delivery and are not of mixes, from the shortest.
// Rows of other horizons than the first one's are not comparable with it.
func soonest(t *RunTable, isMix func(string) bool) (rows []int) {
	for i := range t.Rows {
		d := t.Rows[i].Delivery
		if d == nil || d.MeanSeconds == nil || isMix(t.Rows[i].Treatment) {
			continue
		}
		if len(rows) > 0 && t.Rows[rows[0]].Delivery.HorizonSeconds != d.HorizonSeconds {
			return nil
		}
		rows = append(rows, i)
	}
	slices.SortStableFunc(rows, func(a, b int) int {
		return cmp.Compare(*t.Rows[a].Delivery.MeanSeconds, *t.Rows[b].Delivery.MeanSeconds)
	})
	return rows
}

// failuresDiffer reports whether the rows' shares of failed trials are not all one.
func failuresDiffer(t *RunTable, rows []int) bool {
	return slices.ContainsFunc(rows[1:], func(i int) bool { return *t.Rows[i].FailedShare != *t.Rows[rows[0]].FailedShare })
}

// ranked is the rows that have an average and are not of mixes, from the highest.
func ranked(t *RunTable, isMix func(string) bool) (rows []int) {
	for i := range t.Rows {
		if r := &t.Rows[i]; r.Missing == "" && r.AverageKBps != nil && !isMix(r.Treatment) {
			rows = append(rows, i)
		}
	}
	slices.SortStableFunc(rows, func(a, b int) int { return cmp.Compare(*t.Rows[b].AverageKBps, *t.Rows[a].AverageKBps) })
	return rows
}

// basis is what a decision is made from; of noise with the ratio, which is nowhere else.
func basis(d *stats.Decision, noise bool) string {
	var out []string
	if noise {
		out = append(out, wording.Change(d.Ratio))
	}
	n := wording.Plural(d.Pairs, "iteration", "iterations")
	if d.Interval.Defined() {
		out = append(out, strings.TrimSuffix(wording.Change(d.Interval.Low), " %")+" to "+wording.Change(d.Interval.High)+" at 95 %")
	} else {
		n = "no interval of " + n
	}
	return strings.Join(append(out, "Hodges–Lehmann", "paired Wilcoxon", n), ", ")
}
