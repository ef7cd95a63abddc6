package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"linktrial/orchestrator/report/wording"
	"linktrial/orchestrator/stats"
)

// Lead is a conclusion without its statistics, for lists of campaigns.
type Lead struct {
	Text    string // without a full stop
	Leader  string // label; empty: treatments are not compared, or the difference is noise
	Decided bool
}

// conclude is the sentence over a run's comparison: by how much the treatment with the
// highest average leads the next one, whether the trials decide it, and about how many
// more iterations would. Empty where fewer than two treatments have figures. Which two
// these are shows only afterwards, so that each pair of treatments counts as a
// comparison of its own. Mixes are left out: their trials have more flows.
func conclude(t *RunTable, samples []sample, isMix func(string) bool) (string, Lead) {
	var ranks []int
	for i := range t.Rows {
		if r := &t.Rows[i]; r.Missing == "" && r.AverageKBps != nil && !isMix(r.Treatment) {
			ranks = append(ranks, i)
		}
	}
	if len(ranks) < 2 {
		return "", Lead{}
	}
	slices.SortStableFunc(ranks, func(a, b int) int { return cmp.Compare(*t.Rows[b].AverageKBps, *t.Rows[a].AverageKBps) })
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
		text := fmt.Sprintf("%s and %s are not compared: %s valid figures of both, and a comparison takes %d", leader, second, wording.Plural(d.Pairs, "iteration has", "iterations have"), minPairs)
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
	var basis []string
	if noise {
		though = ""
		fmt.Fprintf(&b, "%s is within noise of %s", leader, second)
		basis = append(basis, wording.Change(d.Ratio))
	} else {
		fmt.Fprintf(&b, "%s leads %s by %s", leader, second, by)
	}
	if d.Interval.Defined() {
		basis = append(basis, strings.TrimSuffix(wording.Change(d.Interval.Low), " %")+" to "+wording.Change(d.Interval.High)+" at 95 %")
	}
	n := wording.Plural(d.Pairs, "iteration", "iterations")
	corrected := "Interval and p are"
	if !d.Interval.Defined() {
		n, corrected = "no interval of "+n, "p is"
	}
	basis = append(basis, "Hodges–Lehmann", "paired Wilcoxon", n)
	p := wording.PValue(&d.P)
	if !strings.HasPrefix(p, "<") {
		p = "= " + p
	} else {
		p = "< " + p[1:]
	}
	fmt.Fprintf(&b, "%s (%s): %s (p %s)", though, strings.Join(basis, ", "), decided, p)
	switch {
	case d.More > stats.ManyMore:
		fmt.Fprintf(&b, "; more than %d more iterations would be needed", stats.ManyMore)
	case d.More > 0:
		fmt.Fprintf(&b, "; about %s would be needed", wording.Plural(d.More, "more iteration", "more iterations"))
	}
	b.WriteString(".")
	if all > 1 {
		fmt.Fprintf(&b, " %s corrected for the %d pairs of treatments (Bonferroni).", corrected, all)
	}
	return wording.Sentence(b.String()), short
}
