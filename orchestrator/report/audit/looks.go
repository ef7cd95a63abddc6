package audit

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/stats"
)

// ruling is what the plan's rule to stop by did in a run, by the leading node's journal
// (docs/data-format.md, look).
type ruling struct {
	looks []tookEffect
	next  int // of the sheet's looks: the first of which there is neither a record nor a finding
}

// tookEffect is a look of the journal that the sheet states.
type tookEffect struct {
	at Finding
	journal.Look
}

// stopped reports whether a look has ended the run.
func (r *ruling) stopped() bool {
	return len(r.looks) > 0 && r.looks[len(r.looks)-1].Stop
}

// against is the look by which a trial is not run; nil: there is none.
func (r *ruling) against(t *runsheet.Trial) *tookEffect {
	i := slices.IndexFunc(r.looks, func(l tookEffect) bool {
		return t.Iteration > l.Iteration && (l.Stop || slices.Contains(l.Beaten, t.Treatment))
	})
	if i < 0 {
		return nil
	}
	return &r.looks[i]
}

// words are what a look says of a trial's treatment.
func (l *tookEffect) words(treatment string) string {
	if l.Stop {
		return fmt.Sprintf("the look after iteration %d (record %d) has stopped the run", l.Iteration, l.at.Record)
	}
	return fmt.Sprintf("by the look after iteration %d (record %d) %s is beaten", l.Iteration, l.at.Record, treatment)
}

// takeLook takes a look of the leading node's journal, and checks its place and what it found.
func (a *auditor) takeLook(at Finding, b *journal.Look) {
	c, r := a.check(Looks), &a.ruling
	c.Objects++
	if a.sheet.Stop == nil {
		c.find(at, "there is a look after iteration %d, and the run sheet has no rule to stop by", b.Iteration)
		return
	}
	stated := a.sheet.Stop.Looks
	place := slices.Index(stated, b.Iteration)
	switch {
	case place < 0:
		c.find(at, "there is a look after iteration %d; the run sheet states looks after iterations %s", b.Iteration, listed(stated))
		return
	case slices.ContainsFunc(r.looks, func(l tookEffect) bool { return l.Iteration == b.Iteration }):
		c.find(at, "there is a second look after iteration %d", b.Iteration)
		return
	case r.stopped():
		c.find(at, "there is a look after iteration %d, and the look after iteration %d has stopped the run", b.Iteration, r.looks[len(r.looks)-1].Iteration)
	case place > r.next:
		c.find(at, "there is a look after iteration %d, and none after iteration %d before it", b.Iteration, stated[r.next])
	}
	for i := range a.sheet.Trials {
		if t := a.history.trials[i]; a.sheet.Trials[i].Iteration <= b.Iteration && (t == nil || !t.closed) {
			c.find(placed(at, i, 0), "there is a look after iteration %d before the trial, of iteration %d, has ended", b.Iteration, a.sheet.Trials[i].Iteration)
			break // those after it have not ended either
		}
	}
	a.checkFound(c, at, b)
	r.looks, r.next = append(r.looks, tookEffect{at, *b}), max(r.next, place+1)
}

// checkFound holds what a look found against what the test finds by the records before it.
func (a *auditor) checkFound(c *Check, at Finding, b *journal.Look) {
	names := a.compared()
	comparisons := a.comparisons(names, b.Iteration)
	rule := a.sheet.Stop
	found, worse, err := stats.Sequential{Alpha: rule.Alpha, Spending: rule.Spending, Looks: rule.Looks}.Family(comparisons, false, b.Iteration)
	if err != nil || b.Fault != "" {
		if err == nil || b.Fault == "" {
			c.find(at, "by the journal the rule could not be followed: %q; by the records before it: %q", b.Fault, orEmpty(err))
		}
		return
	}
	if len(b.Comparisons) != len(found) {
		c.find(at, "the look has %d comparisons, %d treatments have %d", len(b.Comparisons), len(names), len(found))
		return
	}
	for i, f := range found {
		want := journal.LookComparison{Reference: comparisons[i].Reference, Value: comparisons[i].Value, Iteration: f.Iteration, Pairs: f.Pairs,
			RankSum: f.RankSum, Boundary: f.Boundary, Level: b.Comparisons[i].Level, Decided: f.Stops}
		if got := b.Comparisons[i]; got != want || !near(got.Level, f.Level) {
			want.Level = f.Level
			c.find(at, "the look after iteration %d found %s; by the records before it: %s", b.Iteration, inWords(&got), inWords(&want))
		}
	}
	var beaten []string
	if n := len(a.ruling.looks); n > 0 {
		beaten = slices.Clone(a.ruling.looks[n-1].Beaten)
	}
	for _, name := range worse {
		if !slices.Contains(beaten, name) {
			beaten = append(beaten, name)
		}
	}
	if stop := len(beaten) >= len(names)-1; !slices.Equal(b.Beaten, beaten) || b.Stop != stop {
		c.find(at, "by the look after iteration %d beaten are: %s, and the run stops: %t; by the records before it: %s, %t",
			b.Iteration, listed(b.Beaten), b.Stop, listed(beaten), stop)
	}
}

// compared is the treatments that the rule compares: those of the sheet that have trials, in the
// order of these, without mixes and probes.
func (a *auditor) compared() (names []string) {
	for i := range a.sheet.Trials {
		t := &a.sheet.Trials[i]
		known := slices.ContainsFunc(a.sheet.Treatments, func(x runsheet.Treatment) bool { return x.Name == t.Treatment })
		if known && len(t.Flows) > 0 && !slices.Contains(names, t.Treatment) {
			names = append(names, t.Treatment)
		}
	}
	return names
}

// comparisons is every two treatments, by the times to delivery, in seconds, of the iterations
// in which both have one.
func (a *auditor) comparisons(names []string, until int) (out []stats.FamilyComparison) {
	times := map[string]map[int]float64{}
	for i := range a.sheet.Trials {
		of, t := &a.sheet.Trials[i], a.history.trials[i]
		if of.Iteration > until || t == nil || !t.closed {
			continue
		}
		took, tells := t.delivered(of.Flows)
		if !tells {
			continue
		}
		if times[of.Treatment] == nil {
			times[of.Treatment] = map[int]float64{}
		}
		// One that was not delivered counts as the horizon, until when it was waited for.
		horizon := a.horizon(i)
		if took < 0 || took > horizon {
			took = horizon
		}
		times[of.Treatment][of.Iteration] = took.Seconds()
	}
	for i, reference := range names {
		for _, value := range names[i+1:] {
			c := stats.FamilyComparison{Reference: reference, Value: value}
			for iteration := 1; iteration <= until; iteration++ {
				x, has := times[reference][iteration]
				if y, both := times[value][iteration]; has && both {
					c.Blocks = append(c.Blocks, stats.Block{Iteration: iteration, Pair: stats.Pair{Reference: x, Value: y}})
				}
			}
			out = append(out, c)
		}
	}
	return out
}

// delivered is how long it took until a trial's payload was there, with the attempts before that
// the protocol failed; negative: it failed the last one, too. False: the last attempt that counts
// tells nothing of the protocol.
func (t *trial) delivered(of []runsheet.Flow) (took time.Duration, tells bool) {
	unclear := 0
	var spent time.Duration
	for _, x := range t.attempts {
		if !x.ended || !counts(x.verdict, x.reason) {
			continue
		}
		if x.verdict == journal.Invalid && x.reason == undetermined {
			if unclear++; unclear <= freeUndetermined {
				continue
			}
		}
		switch x.verdict {
		case journal.Succeeded:
			took, tells = spent+x.span(of), true
		case journal.Failed, journal.TimedOut:
			spent += x.duration
			took, tells = -1, true
		default:
			tells = false
		}
	}
	return took, tells
}

// span is how long an attempt that succeeded took, from its first flow's start until the last
// one's payload was there.
func (x *attempt) span(of []runsheet.Flow) time.Duration {
	var first, last time.Duration
	for i := range min(len(of), len(x.flows)) {
		end := of[i].Start + time.Duration(x.flows[i].ConnectNS)
		if r := x.flows[i].Result; r != nil {
			end += time.Duration(r.ElapsedNS)
		}
		if i == 0 {
			first, last = of[i].Start, end
		}
		first, last = min(first, of[i].Start), max(last, end)
	}
	return last - first
}

// checkNeeded checks that looks let a trial run whose attempt starts, and that none is missing
// before it.
func (a *auditor) checkNeeded(at Finding, trial int) {
	if a.sheet.Stop == nil {
		return
	}
	c, r, of := a.check(Looks), &a.ruling, &a.sheet.Trials[trial]
	if l := r.against(of); l != nil {
		c.find(at, "it starts, and %s", l.words(of.Treatment))
	}
	for stated := a.sheet.Stop.Looks; !r.stopped() && r.next < len(stated) && stated[r.next] < of.Iteration; r.next++ {
		c.find(at, "it starts, in iteration %d, before there is a look after iteration %d", of.Iteration, stated[r.next])
	}
}

// checkNotNeeded checks that a trial ends without an attempt where a look says so, and only there.
func (a *auditor) checkNotNeeded(at Finding, t *trial, b *journal.TrialEnded) {
	c, of := a.check(Looks), &a.sheet.Trials[b.Trial]
	l := a.ruling.against(of)
	switch {
	case b.Reason != journal.ReasonNotNeeded:
		if l != nil && len(t.attempts) == 0 {
			c.find(at, "it ended as %s %s, expected as not needed: %s", b.Verdict, b.Reason, l.words(of.Treatment))
		}
	case l == nil:
		c.find(at, "it ended as not needed, and no look says so")
	case len(t.attempts) > 0 || b.Verdict != journal.Aborted:
		c.find(at, "it ended as not needed with the verdict %s after %d attempts; what is not needed is aborted, without any", b.Verdict, len(t.attempts))
	}
}

// notNeeded reports whether the journal has a trial as one that the rule to stop by left out.
func (a *auditor) notNeeded(trial int) bool {
	t := a.history.trials[trial]
	return t != nil && t.closed && t.ended.Reason == journal.ReasonNotNeeded && len(t.attempts) == 0
}

// endLooks is called after the last record.
func (a *auditor) endLooks() {
	c, r := a.check(Looks), &a.ruling
	switch {
	case a.sheet.Stop == nil && c.Objects == 0:
		c.note("the run sheet has no rule to stop by, and the journal no look")
	case a.sheet.Stop == nil:
	case !a.history.seen:
		c.skip("there is no record of the leading node")
	case a.run.State == "completed" && !r.stopped() && r.next < len(a.sheet.Stop.Looks):
		c.find(Finding{}, "the run is completed, and there is no look after iteration %d", a.sheet.Stop.Looks[r.next])
	}
	left := 0
	for i := range a.sheet.Trials {
		if a.notNeeded(i) {
			left++
		}
	}
	if left > 0 {
		c.note("not needed, by the rule to stop by: %d of %d trials", left, len(a.sheet.Trials))
	}
}

func inWords(l *journal.LookComparison) string {
	return fmt.Sprintf("%s against %s at iteration %d, %d pairs, rank sum %d, boundary %d, level %.9g, decided: %t",
		l.Value, l.Reference, l.Iteration, l.Pairs, l.RankSum, l.Boundary, l.Level, l.Decided)
}

// listed is a list in words.
func listed[T any](list []T) string {
	if len(list) == 0 {
		return "none"
	}
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(list), " ", ", "), "[]")
}

func orEmpty(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
