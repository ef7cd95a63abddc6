package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/executor/stoprule"
	"linktrial/internal/stats"
	"linktrial/orchestrator/report/wording"
)

// NotNeeded reports whether the rule to stop by ended the trial before its first attempt.
func (r *Run) NotNeeded(t *Trial) bool {
	return len(r.Looks) > 0 && r.Sheet != nil && len(t.Attempts) == 0 && t.Verdict == journal.Aborted &&
		t.Index >= 0 && t.Index < len(r.Sheet.Trials) && stoprule.NotNeeded(&r.Sheet.Trials[t.Index], r.Looks)
}

// stopping is what became of the rule of a run; nil: it has none.
func (r *Run) stopping(t *RunTable, samples []sample) *Stopping {
	if r.Sheet == nil || r.Sheet.Stop == nil {
		return nil
	}
	rule := r.Sheet.Stop
	s := &Stopping{Looks: rule.Looks, Alpha: rule.Alpha, Spending: rule.Spending, Beaten: []Beaten{}, Comparisons: []StopComparison{}}
	if len(r.Looks) == 0 {
		s.compare(r.Sheet, timesOf(t, samples), t.Partial)
		return s
	}
	last := &r.Looks[len(r.Looks)-1]
	s.After, s.Fault = last.Iteration, last.Fault
	s.Stopped = last.Stop && last.Iteration < rule.Looks[len(rule.Looks)-1]
	for i := range r.Looks {
		for _, name := range r.Looks[i].Beaten {
			if !slices.ContainsFunc(s.Beaten, func(b Beaten) bool { return b.Treatment == name }) {
				s.Beaten = append(s.Beaten, Beaten{name, r.Sheet.Label(name), r.Looks[i].Iteration})
			}
		}
	}
	s.compare(r.Sheet, timesOf(t, samples), t.Partial)
	return s
}

// timesOf is the times to delivery of the rows' trials, as the rule takes them.
func timesOf(t *RunTable, samples []sample) stoprule.Times {
	times := stoprule.Times{}
	for i := range samples {
		for iteration, w := range samples[i].waits() {
			times.Set(t.Rows[i].Treatment, iteration, min(w.Time, samples[i].horizon))
		}
	}
	return times
}

// mostAnytime is the most iterations of which an interval is made that holds at any time: it
// takes long for many.
const mostAnytime = 100

// compare fills the comparisons, by what counts now.
func (s *Stopping) compare(sheet *runsheet.Sheet, times stoprule.Times, underWay bool) {
	comparisons := stoprule.Comparisons(sheet.Compared(), times)
	rule := sheet.Stop.Sequential()
	found, beaten, err := rule.Family(comparisons, false, s.After)
	if err != nil {
		s.Fault = err.Error()
		return
	}
	for i, f := range found {
		c := StopComparison{Reference: comparisons[i].Reference, Value: comparisons[i].Value, After: f.Iteration, Pairs: f.Pairs, Decided: f.Stops,
			Ratio: Rounded(f.Ratio), RatioCI: interval(f.Interval)}
		if f.Iteration > 0 {
			c.P, c.Level = Rounded(f.P), Rounded(f.Level)
		}
		if f.Stops && f.Iteration < s.Looks[len(s.Looks)-1] {
			alone := stats.Sequential{Alpha: f.Level, Spending: rule.Spending, Looks: rule.Looks}
			if x, err := alone.Adjusted(comparisons[i].Blocks, f.Iteration); err == nil {
				c.Ratio, c.Unbiased = Rounded(x), true
			}
		}
		if blocks := comparisons[i].Blocks; underWay && !f.Stops && len(blocks) <= mostAnytime {
			logs := make([]float64, len(blocks))
			for k, b := range blocks {
				logs[k] = math.Log(b.Value / b.Reference)
			}
			of := stats.Anytime(logs, 1-s.Alpha/float64(len(found)))
			c.AnytimeCI = interval(stats.Interval{Low: math.Exp(of.Low), High: math.Exp(of.High)})
		}
		s.Comparisons = append(s.Comparisons, c)
	}
	s.since(sheet, beaten)
}

// since says where the rule would find others beaten by what counts now.
func (s *Stopping) since(sheet *runsheet.Sheet, now []string) {
	var gone, come []string
	for _, b := range s.Beaten {
		if !slices.Contains(now, b.Treatment) {
			gone = append(gone, wording.Clean(b.Label))
		}
	}
	for _, name := range now {
		if !slices.ContainsFunc(s.Beaten, func(b Beaten) bool { return b.Treatment == name }) {
			come = append(come, wording.Clean(sheet.Label(name)))
		}
	}
	var parts []string
	if len(gone) > 0 {
		parts = append(parts, "would not find beaten "+strings.Join(gone, ", "))
	}
	if len(come) > 0 {
		parts = append(parts, "would find beaten "+strings.Join(come, ", "))
	}
	if len(parts) > 0 {
		s.Since = "What counts now is not what the rule saw (marks and the other nodes' journals came later): it " + strings.Join(parts, ", and ") + "."
	}
}

// leaveOutFixed takes out of the rows what holds for a fixed number of iterations alone.
func (t *RunTable) leaveOutFixed() {
	for i := range t.Rows {
		r := &t.Rows[i]
		r.MoreIterations = nil
		if c := r.Comparison; c != nil {
			c.DifferenceCI, c.DifferenceP, c.RatioCI, c.GainCI, c.W, c.P, c.PHolm = nil, nil, nil, nil, nil, nil, nil
		}
		if r.Delivery != nil && r.Delivery.Difference != nil {
			r.Delivery.Difference.SoonerCI, r.Delivery.Difference.P, r.Delivery.Difference.PHolm = nil, nil, nil
		}
	}
}

// concludeStopping is the conclusion of a run with a rule: what it found, and about the first
// treatment and the next one.
func concludeStopping(t *RunTable) (string, Lead) {
	s := t.Stopping
	if s.After == 0 {
		text := "The rule to stop by has not looked yet"
		return text + ".", Lead{Text: text}
	}
	begin := fmt.Sprintf("After iteration %d of at most %d, the rule ", s.After, s.Looks[len(s.Looks)-1])
	if t.Partial {
		begin = "So far: a" + begin[1:]
	}
	var names []string
	for _, b := range s.Beaten {
		name := wording.Clean(b.Label)
		if b.After < s.After {
			name += fmt.Sprintf(" (after %d)", b.After)
		}
		names = append(names, name)
	}
	first, next, c := s.leading(t)
	switch {
	case s.Fault != "":
		return begin + "could not be followed: " + wording.Clean(s.Fault) + ".", Lead{Text: "the rule to stop by could not be followed"}
	case len(names) == 0:
		begin += "has found no treatment beaten"
	case first >= 0:
		begin += fmt.Sprintf("found %s to deliver sooner than %s", wording.Clean(t.Rows[first].Label), strings.Join(names, ", "))
	default:
		begin += "has found beaten " + strings.Join(names, ", ")
	}
	if first < 0 {
		if len(names) > 0 {
			begin += "; of the others it decides nothing"
		}
		return begin + ".", Lead{Text: "the rule decides no first treatment"}
	}
	lead := Lead{Text: wording.Clean(t.Rows[first].Label) + " delivers sooner than all others: decided", Leader: wording.Clean(t.Rows[first].Label), Decided: true}
	if next >= 0 && c != nil && c.Ratio != nil {
		begin += fmt.Sprintf(". It takes %s of the time of the next, %s%s", wording.Number(c.Ratio), wording.Clean(t.Rows[next].Label), c.basis())
	}
	return begin + ".", lead
}

// basis is the interval and the pairs of a comparison, in brackets.
func (c *StopComparison) basis() string {
	parts := []string{}
	if c.RatioCI != nil {
		parts = append(parts, wording.Number(&c.RatioCI.Low)+" to "+wording.Number(&c.RatioCI.High)+" at 95 % over all looks and comparisons")
	}
	if c.Unbiased {
		parts = append(parts, "median-unbiased")
	}
	parts = append(parts, wording.Plural(c.Pairs, "iteration", "iterations"))
	return " (" + strings.Join(parts, ", ") + ")"
}

// leading is the rows of the treatment that all others are beaten by, and of that with the
// shortest mean time to delivery of these, with their comparison, turned so that its ratio is
// that of the first; -1 and nil where there are none.
func (s *Stopping) leading(t *RunTable) (first, next int, c *StopComparison) {
	first, next = -1, -1
	compared := map[string]bool{}
	for i := range s.Comparisons {
		compared[s.Comparisons[i].Reference], compared[s.Comparisons[i].Value] = true, true
	}
	if len(s.Beaten) != len(compared)-1 {
		return -1, -1, nil
	}
	for i := range t.Rows {
		r := &t.Rows[i]
		switch {
		case !compared[r.Treatment]:
		case !slices.ContainsFunc(s.Beaten, func(b Beaten) bool { return b.Treatment == r.Treatment }):
			first = i
		case r.Delivery != nil && r.Delivery.MeanSeconds != nil && (next < 0 || *r.Delivery.MeanSeconds < *t.Rows[next].Delivery.MeanSeconds):
			next = i
		}
	}
	if first < 0 || next < 0 {
		return first, -1, nil
	}
	for _, x := range s.Comparisons {
		switch {
		case x.Value == t.Rows[first].Treatment && x.Reference == t.Rows[next].Treatment:
			return first, next, &x
		case x.Reference == t.Rows[first].Treatment && x.Value == t.Rows[next].Treatment:
			return first, next, x.turned()
		}
	}
	return first, -1, nil
}

// turned holds the reference against the value.
func (c StopComparison) turned() *StopComparison {
	c.Reference, c.Value = c.Value, c.Reference
	if c.Ratio != nil {
		c.Ratio = Rounded(1 / *c.Ratio)
	}
	if c.RatioCI != nil {
		c.RatioCI = interval(stats.Interval{Low: 1 / c.RatioCI.High, High: 1 / c.RatioCI.Low})
	}
	return &c
}

// mostCompared is how many comparisons the notes of a run name.
const mostCompared = 10

// stopNotes are on the rule, and on pairs other than the conclusion's.
func stopNotes(t *RunTable) (notes []string) {
	s := t.Stopping
	looks := make([]string, len(s.Looks))
	for i, l := range s.Looks {
		looks[i] = fmt.Sprint(l)
	}
	alpha := 100 * s.Alpha
	spending := map[stats.Spending]string{stats.OBrienFleming: "O'Brien–Fleming", stats.Pocock: "Pocock"}[s.Spending]
	notes = append(notes, fmt.Sprintf("Rule to stop by: looks after iterations %s; signed-rank test of the times to delivery of every two treatments, in which a trial that failed counts as the horizon; %s %% over all looks (%s) and comparisons (Holm). A treatment that is beaten has no more trials. Averages and their intervals are as measured; intervals and p of pairs that hold for a fixed number of iterations are left out.", strings.Join(looks, ", "), wording.Short(&alpha), spending))
	if s.Since != "" {
		notes = append(notes, s.Since)
	}
	label := map[string]string{}
	for i := range t.Rows {
		label[t.Rows[i].Treatment] = wording.Clean(t.Rows[i].Label)
	}
	first, next, _ := s.leading(t)
	left := 0
	for i := range s.Comparisons {
		c := &s.Comparisons[i]
		named := func(row int) bool {
			return row >= 0 && (c.Reference == t.Rows[row].Treatment || c.Value == t.Rows[row].Treatment)
		}
		switch {
		case c.AnytimeCI == nil && (c.Ratio == nil || named(first) && named(next)):
			continue // nothing is known, or the conclusion has it
		case len(notes) > mostCompared:
			left++
			continue
		case c.AnytimeCI != nil:
			notes = append(notes, fmt.Sprintf("So far %s takes %s to %s of the time of %s (95 %% over all comparisons, whenever one looks).", label[c.Value], wording.Number(&c.AnytimeCI.Low), wording.Number(&c.AnytimeCI.High), label[c.Reference]))
			continue
		}
		notes = append(notes, fmt.Sprintf("%s takes %s of the time of %s%s: %s.", label[c.Value], wording.Number(c.Ratio), label[c.Reference], c.basis(), decision(c.Decided)))
	}
	if left > 0 {
		notes = append(notes, wording.Plural(left, "more comparison is", "more comparisons are")+" in results.json.")
	}
	return notes
}
