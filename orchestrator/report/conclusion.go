package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"linktrial/internal/stats"
	"linktrial/orchestrator/report/wording"
)

// conclude is the sentence over a run's comparison: by how much the best treatment leads the
// next one, whether the trials decide it, and about how many more iterations would. Empty
// where fewer than two treatments have values. Which two these are shows only afterwards, so
// that each pair of treatments counts as a comparison of its own. Mixes are left out: their
// trials have more flows.
//
// Averages are over the trials that succeeded. Where shares of failures differ, a treatment
// that gives up in the hard moments has the higher one: then the conclusion is over the time
// to delivery.
func conclude(t *RunTable, samples []sample, isMix func(string) bool) (string, Lead) {
	r := overThroughput(t, samples, isMix)
	if rows := soonest(t, isMix); len(rows) > 1 && failuresDiffer(t, rows) {
		r = overDelivery(t, samples, rows)
	}
	if len(r.rows) < 2 {
		return "", Lead{}
	}
	best, next, all := r.rows[0], r.rows[1], len(r.rows)*(len(r.rows)-1)/2
	d, though := r.judge(best, next, all), ""
	if d.behind {
		best, next, though = next, best, r.though
		d = r.judge(best, next, all)
	}
	leader, second := wording.Clean(t.Rows[best].Label), wording.Clean(t.Rows[next].Label)
	if d.pairs < minPairs {
		text := fmt.Sprintf("%s and %s are not compared: %s %s of both, and a comparison takes %d", leader, second, wording.Plural(d.pairs, "iteration has", "iterations have"), r.lacks, minPairs)
		return text + ".", Lead{Text: text}
	}
	begin, called, comma := "", second, ""
	if t.Partial {
		begin = "So far: "
	}
	if n := len(r.rows); n > 2 {
		begin, called, comma = fmt.Sprintf("%sof %d treatments, ", begin, n), "the next, "+second, ","
	}
	if !d.decided && d.more == 0 {
		noise := leader + " " + r.noise + " "
		return wording.Sentence(begin + noise + called + " (" + d.by + ", " + d.basis + ")" + d.end(all) + r.note), Lead{Text: noise + second}
	}
	short := Lead{Text: r.leads(leader, second, "", strings.TrimPrefix(d.by, "+")) + ": " + decision(d.decided), Leader: leader, Decided: d.decided}
	return wording.Sentence(begin + r.leads(leader, called, comma, strings.TrimPrefix(d.by, "+")) + though + " (" + d.basis + ")" + d.end(all) + r.note), short
}

func decision(decided bool) string { return map[bool]string{false: "not "}[decided] + "decided" }

// ranking is what a conclusion is over.
type ranking struct {
	rows  []int // from the best
	judge func(best, next, comparisons int) judged
	// leads says who is ahead of whom by how much; a comma ends an apposition of the second.
	leads func(leader, second, comma, by string) string
	noise string // the verb where the difference is noise
	// though is said where fewer of the pairs agree with the ranking, lacks is what both of a
	// pair need, and note ends the conclusion.
	though, lacks, note string
}

// judged is two rows held against each other.
type judged struct {
	pairs, more int
	behind      bool // the best of the ranking is, of the two
	decided     bool
	p           float64
	by          string // how far they are apart, with its sign
	interval    bool
	basis       string // what it is decided by
}

// end is the decision, what it lacks, and for how many comparisons it is corrected.
func (d *judged) end(all int) string {
	text := fmt.Sprintf(": %s (p %s)", decision(d.decided), strings.Replace("= "+wording.PValue(&d.p), "= <", "< ", 1))
	switch {
	case d.more > stats.ManyMore:
		text += fmt.Sprintf("; more than %d more iterations would be needed", stats.ManyMore)
	case d.more > 0:
		text += fmt.Sprintf("; about %s would be needed", wording.Plural(d.more, "more iteration", "more iterations"))
	}
	text += "."
	if all > 1 {
		corrected := map[bool]string{true: "Interval and p are", false: "p is"}[d.interval]
		text += fmt.Sprintf(" %s corrected for the %d pairs of treatments (Bonferroni).", corrected, all)
	}
	return text
}

// overThroughput ranks averages, and judges by the ratio of the valid trials of an iteration.
func overThroughput(t *RunTable, samples []sample, isMix func(string) bool) ranking {
	return ranking{rows: ranked(t, isMix), noise: "is within noise of", though: ", though its average is lower", lacks: "valid values",
		leads: func(leader, second, comma, by string) string {
			return leader + " leads " + second + comma + " by " + by
		},
		judge: func(best, next, comparisons int) judged {
			d := stats.Decide(stats.PairUp(samples[next].by(rateOf), samples[best].by(rateOf)), level, comparisons)
			n := wording.Plural(d.Pairs, "iteration", "iterations")
			basis := "Hodges–Lehmann, paired Wilcoxon, no interval of " + n
			if d.Interval.Defined() {
				basis = strings.TrimSuffix(wording.Change(d.Interval.Low), " %") + " to " + wording.Change(d.Interval.High) + " at 95 %, Hodges–Lehmann, paired Wilcoxon, " + n
			}
			return judged{pairs: d.Pairs, more: d.More, behind: d.Ratio < 1, decided: d.Decided, p: d.P, by: wording.Change(d.Ratio), interval: d.Interval.Defined(), basis: basis}
		}}
}

// overDelivery ranks restricted means of the time to delivery, and judges by the differences
// of all iterations in which both treatments tell of their protocol.
func overDelivery(t *RunTable, samples []sample, rows []int) ranking {
	return ranking{rows: rows, noise: "delivers within noise of", though: ", though not over all trials", lacks: "an outcome",
		note: fmt.Sprintf(" Shares of failures differ, so this is over the time to delivery of all trials; averages leave out those that failed: %s.", failedOf(t, rows)),
		leads: func(leader, second, _, by string) string {
			return leader + " delivers " + by + " sooner than " + second
		},
		judge: func(best, next, comparisons int) judged {
			d := stats.DecideSooner(samples[next].waits(), samples[best].waits(), samples[best].horizon, level, comparisons)
			basis := fmt.Sprintf("restricted mean up to %s s, paired t, %s", wording.Short(&samples[best].horizon), wording.Plural(d.Pairs, "iteration", "iterations"))
			if d.Interval.Defined() {
				basis = strings.ReplaceAll(wording.Number(&d.Interval.Low)+" to "+wording.Number(&d.Interval.High), "-", "−") + " s at 95 %, " + basis
			}
			return judged{pairs: d.Pairs, more: d.More, behind: d.Difference < 0, decided: d.Decided, p: d.P, by: wording.Number(&d.Difference) + " s", interval: d.Interval.Defined(), basis: basis}
		}}
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

// LeadsText says in how many runs which treatment leads, those that lead in most runs first;
// empty of no leads.
func LeadsText(leads []Lead) string {
	type count struct{ runs, decided int }
	counts, order := map[string]*count{}, []string{}
	for _, l := range leads {
		if l.Leader == "" {
			continue
		}
		c := counts[l.Leader]
		if c == nil {
			c = &count{}
			counts[l.Leader], order = c, append(order, l.Leader)
		}
		c.runs++
		if l.Decided {
			c.decided++
		}
	}
	runs := wording.Plural(len(leads), "run", "runs")
	switch {
	case len(leads) == 0:
		return ""
	case len(order) == 0:
		return fmt.Sprintf("In %s no treatment leads.", runs)
	}
	slices.SortStableFunc(order, func(x, y string) int { return cmp.Compare(counts[y].runs, counts[x].runs) })
	var parts []string
	for i, name := range order {
		verb := map[bool]string{true: " leads"}[i == 0]
		parts = append(parts, fmt.Sprintf("%s%s in %d (%d decided)", name, verb, counts[name].runs, counts[name].decided))
	}
	return fmt.Sprintf("Of %s, %s.", runs, strings.Join(parts, ", "))
}
