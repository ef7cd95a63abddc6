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
func conclude(t *RunTable, samples []sample, isMix func(string) bool) (string, Lead) {
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
	decided := map[bool]string{false: "not "}[d.Decided] + "decided"
	by := strings.TrimPrefix(wording.Change(d.Ratio), "+")
	short := Lead{Text: fmt.Sprintf("%s leads %s by %s: %s", leader, second, by, decided), Leader: leader, Decided: d.Decided}
	if noise {
		short = Lead{Text: fmt.Sprintf("%s is within noise of %s", leader, second)}
	}
	var b strings.Builder
	if t.Partial {
		b.WriteString("So far: ")
	}
	if len(ranks) > 2 {
		fmt.Fprintf(&b, "of %d treatments, ", len(ranks))
		second = "the next, " + second
		if !noise {
			second += ","
		}
	}
	if noise {
		though = ""
		fmt.Fprintf(&b, "%s is within noise of %s", leader, second)
	} else {
		fmt.Fprintf(&b, "%s leads %s by %s", leader, second, by)
	}
	p := strings.Replace("= "+wording.PValue(&d.P), "= <", "< ", 1)
	fmt.Fprintf(&b, "%s (%s): %s (p %s)", though, basis(&d, noise), decided, p)
	switch {
	case d.More > stats.ManyMore:
		fmt.Fprintf(&b, "; more than %d more iterations would be needed", stats.ManyMore)
	case d.More > 0:
		fmt.Fprintf(&b, "; about %s would be needed", wording.Plural(d.More, "more iteration", "more iterations"))
	}
	b.WriteString(".")
	if all > 1 {
		corrected := map[bool]string{true: "Interval and p are", false: "p is"}[d.Interval.Defined()]
		fmt.Fprintf(&b, " %s corrected for the %d pairs of treatments (Bonferroni).", corrected, all)
	}
	return wording.Sentence(b.String()), short
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
