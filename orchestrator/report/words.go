package report

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"

	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/unit"
	"linktrial/orchestrator/report/wording"
)

// Heading names a run in one line.
func (t *RunTable) Heading() string {
	var parts []string
	for _, s := range []string{t.Group, t.Settings} {
		if s != "" {
			parts = append(parts, s)
		}
	}
	parts = append(parts, cmp.Or(t.RadioTitle, "unknown radio")+" at "+cmp.Or(t.TopologyTitle, "unknown topology"))
	parts = append(parts, unit.FormatPayload(t.SizeBytes), wording.Plural(t.Iterations, "iteration", "iterations"))
	if t.Order != "" {
		parts = append(parts, t.Order+" order")
	}
	if s := t.PlaceText(); s != "" {
		parts = append(parts, s)
	}
	return wording.Clean(strings.Join(parts, " · "))
}

// PlaceText says where a run took place, and where its results come from if they were
// imported; empty: neither is known.
func (t *RunTable) PlaceText() string {
	return strings.TrimPrefix(strings.TrimSuffix(t.Place+", "+t.Imported.Text(), ", "), ", ")
}

// RateUnit is the unit of the throughputs of all tables for people, by the largest average
// among them.
func (v *Analysis) RateUnit() wording.RateUnit {
	largest := 0.0
	for i := range v.Tables {
		for j := range v.Tables[i].Rows {
			if x := v.Tables[i].Rows[j].AverageKBps; x != nil {
				largest = max(largest, *x)
			}
		}
	}
	return wording.RateUnitFor(largest)
}

// PartialNote says why a table is not the whole of a run, or nothing.
func (t *RunTable) PartialNote() string {
	if !t.Partial {
		return ""
	}
	open := t.leftOutNotEnded
	for i := range t.Rows {
		open += t.Rows[i].NotEnded
	}
	s := "partial: " + cmp.Or(t.State, "unknown state")
	if open > 0 {
		s += ", " + wording.Plural(open, "trial has", "trials have") + " not ended"
	}
	if t.Message != "" {
		s += ": " + t.Message
	}
	return wording.Clean(s)
}

// ReferenceLabel is the label of the treatment others are held against.
func (t *RunTable) ReferenceLabel() string {
	for i := range t.Rows {
		if t.Rows[i].Treatment == t.Reference {
			return wording.Clean(t.Rows[i].Label)
		}
	}
	return t.referenceLabel
}

// Has reports whether a condition such as [HasComparison] holds for any row.
func (t *RunTable) Has(what func(*Row) bool) bool {
	for i := range t.Rows {
		if what(&t.Rows[i]) {
			return true
		}
	}
	return false
}

// HasComparison, HasPublished, HasIdeal and HasCodedBound say what a row has to show.
func HasComparison(r *Row) bool { return r.Comparison != nil }

// HasPublished: see [HasComparison].
func HasPublished(r *Row) bool { return r.Published != nil }

// HasIdeal: see [HasComparison].
func HasIdeal(r *Row) bool { return r.ShareOfIdeal != nil }

// HasCodedBound: see [HasComparison].
func HasCodedBound(r *Row) bool { return r.ShareOfCodedBound != nil }

// ValidOf is "9/10".
func (r *Row) ValidOf() string { return fmt.Sprintf("%d/%d", r.Valid, r.Trials) }

// Name is what the failure is called: "timed-out (transfer-timeout)".
func (f Failure) Name() string {
	if f.Reason == "" {
		return wording.Clean(string(f.Verdict))
	}
	return wording.Clean(string(f.Verdict) + " (" + f.Reason + ")")
}

// Remarks says in one sentence which relay processes a row's flows pass and what its
// figures leave out, or nothing.
func (r *Row) Remarks() string {
	troubles := r.Troubles()
	switch {
	case r.Via == "":
		return troubles
	case troubles == "":
		return "passes " + r.Via
	}
	return "passes " + r.Via + "; " + troubles
}

// Crashes is the number of attempts in which the treatment's driver crashed, at either end.
func (r *Row) Crashes() (n int) {
	for _, f := range r.Failures {
		if f.Reason == journal.ReasonCrashed {
			n += f.Attempts
		}
	}
	return n
}

// Troubles says in one sentence what a row's figures leave out, or nothing.
func (r *Row) Troubles() string {
	var parts []string
	if r.Failed > 0 {
		parts = append(parts, fmt.Sprintf("%d of %s failed", r.Failed, wording.Plural(r.Trials, "trial", "trials")))
	}
	if r.Excluded > 0 {
		parts = append(parts, fmt.Sprintf("%d of %s excluded", r.Excluded, wording.Plural(r.Trials, "trial", "trials")))
	}
	if r.NotEnded > 0 {
		parts = append(parts, wording.Plural(r.NotEnded, "trial", "trials")+" not ended")
	}
	if r.ExtraAttempts > 0 {
		parts = append(parts, wording.Plural(r.ExtraAttempts, "attempt", "attempts")+" beyond the first")
	}
	if n := r.Crashes(); n > 0 {
		parts = append(parts, "the driver crashed in "+wording.Plural(n, "attempt", "attempts"))
	}
	if len(r.Failures) > 0 {
		n := 0
		for _, f := range r.Failures {
			n += f.Attempts
		}
		parts = append(parts, wording.Plural(n, "attempt gave", "attempts gave")+" no figure: "+strings.Join(alike(r.Failures), ", "))
	}
	return strings.Join(parts, "; ")
}

// numbers are those in the text of a reason; digits in names are none.
var numbers = regexp.MustCompile(`\b[0-9]+([.][0-9]+)?\b`)

// alike names failures and how many attempts had each. Those that differ in the figures of
// their reasons alone are one, with the figures of the first: each attempt of which a rule is
// broken has its own.
func alike(all []Failure) (out []string) {
	type group struct {
		first    string
		attempts int
		others   int
	}
	var groups []*group
	known := map[string]*group{}
	for _, f := range all {
		key := numbers.ReplaceAllString(f.Name(), "0")
		g := known[key]
		if g == nil {
			g = &group{first: f.Name()}
			known[key], groups = g, append(groups, g)
		} else {
			g.others += f.Attempts
		}
		g.attempts += f.Attempts
	}
	for _, g := range groups {
		text := fmt.Sprintf("%d× %s", g.attempts, g.first)
		if g.others > 0 {
			text += fmt.Sprintf(" (%d with other figures)", g.others)
		}
		out = append(out, text)
	}
	return out
}

// passes names the relay processes that a treatment's flows pass.
func passes(t *runsheet.Treatment) string {
	parts := make([]string, len(t.Via))
	for i, v := range t.Via {
		parts[i] = strings.TrimSpace(v.Protocol+" "+v.DriverVersion) + " at the " + string(v.At)
	}
	return strings.Join(parts, ", ")
}
