package report

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/unit"
	"linktrial/orchestrator/report/wording"
)

// Where names the conditions of a run in one line: group, settings, radio, topology, size.
func (t *RunTable) Where() string { return wording.Clean(strings.Join(t.where(), " · ")) }

func (t *RunTable) where() []string {
	var parts []string
	for _, s := range []string{t.Group, t.Settings} {
		if s != "" {
			parts = append(parts, s)
		}
	}
	return append(parts, cmp.Or(t.RadioTitle, "unknown radio")+" at "+cmp.Or(t.TopologyTitle, "unknown topology"), unit.FormatPayload(t.SizeBytes))
}

// Heading names a run in one line.
func (t *RunTable) Heading() string {
	parts := append(t.where(), wording.Plural(t.Iterations, "iteration", "iterations"))
	if rule := t.RuleText(); rule != "" {
		parts = append(parts, rule)
	}
	if t.Order != "" {
		parts = append(parts, t.Order+" order")
	}
	if s := t.PlaceText(); s != "" {
		parts = append(parts, s)
	}
	return wording.Clean(strings.Join(parts, " · "))
}

// RuleText says in some words what a rule to stop by did; empty: the run has none.
func (t *RunTable) RuleText() string {
	switch s := t.Stopping; {
	case s == nil:
		return ""
	case s.Stopped:
		return fmt.Sprintf("stopped by its rule after %d", s.After)
	case t.Partial:
		return "with a rule to stop by"
	}
	return "not stopped by its rule"
}

// PlaceText says where a run took place, and where its results come from if they were
// imported; empty: neither is known.
func (t *RunTable) PlaceText() string {
	return strings.TrimPrefix(strings.TrimSuffix(t.Place+", "+t.Imported.Text(), ", "), ", ")
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

// HasDelivery: see [HasComparison].
func HasDelivery(r *Row) bool { return r.Delivery != nil }

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
// values leave out, or nothing.
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

// Troubles says in one sentence what a row's values leave out, or nothing.
func (r *Row) Troubles() string {
	var parts []string
	if r.Failed > 0 {
		text := fmt.Sprintf("%d of %s failed", r.Failed, wording.Plural(r.Trials, "trial", "trials"))
		if r.Valid > 0 {
			text += fmt.Sprintf(", so that the average is of %d of %d", r.Valid, r.Valid+r.Failed)
		}
		parts = append(parts, text)
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
		parts = append(parts, wording.Plural(n, "attempt gave", "attempts gave")+" no value: "+strings.Join(r.FailureTexts(), ", "))
	}
	return strings.Join(parts, "; ")
}

// FailureTexts name what gave no value, and how many attempts that was: "2× failed (exited)".
func (r *Row) FailureTexts() []string { return alike(r.Failures) }

// numbers are those in the text of a reason; digits in names are none.
var numbers = regexp.MustCompile(`\b[0-9]+([.][0-9]+)?\b`)

// alike names failures and how many attempts had each. Those that differ in the numbers of
// their reasons alone are one, with the numbers of the first: each attempt of which a rule is
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
			text += fmt.Sprintf(" (%d with other numbers)", g.others)
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

// UnloadedNote is what every output says of such a probe.
const UnloadedNote = "no transfer beside it connected"

// Name is what the row is called: the probe, and what ran beside it.
func (r *ProbeRow) Name() string {
	if r.Beside == "" {
		return wording.Clean(r.Label) + ", alone"
	}
	return wording.Clean(r.Label) + " beside " + wording.Clean(r.BesideLabel)
}

// open reports whether trials of the row have not ended.
func (r *ProbeRow) open() bool {
	ended := r.Measured + r.Unloaded
	for _, f := range r.Failures {
		ended += f.Attempts
	}
	return ended < r.Trials
}

// Caveats are what the row's values leave out, and of what else the reader must know: every
// output that shows one of them shows these too.
func (r *ProbeRow) Caveats() (out []string) {
	for _, f := range r.Failures {
		out = append(out, fmt.Sprintf("%d without values: %s", f.Attempts, wording.Clean(strings.TrimSpace(string(f.Verdict)+" "+f.Reason))))
	}
	if r.Unloaded > 0 {
		out = append(out, fmt.Sprintf("%d of %d left out, because %s", r.Unloaded, r.Measured+r.Unloaded, UnloadedNote))
	}
	if r.FailedTransfers > 0 {
		out = append(out, fmt.Sprintf("%d of the %d measured ran beside a transfer that gave no valid value", r.FailedTransfers, r.Measured))
	}
	if c := r.Capacity; c != nil && c.Unfinished > 0 {
		out = append(out, fmt.Sprintf("in %d of %d searches the time was up before the capacity was known to 1 %%: it may be higher", c.Unfinished, c.Measured))
	}
	if c := r.Capacity; c != nil && c.Highest > 0 {
		out = append(out, fmt.Sprintf("in %d of %d searches the highest rate allowed, or possible for the sender, was not too much: the capacity may be higher", c.Highest, c.Measured))
	}
	if r.Unsent > 0 {
		out = append(out, fmt.Sprintf("its congestion control did not let %d of the %d packets offered go; they are no losses", r.Unsent, r.Offered))
	}
	return out
}

// ProbeCaveats are the caveats of all probes of a table, each with the row's name.
func (t *RunTable) ProbeCaveats() (out []string) {
	for i := range t.Probes {
		for _, c := range t.Probes[i].Caveats() {
			out = append(out, t.Probes[i].Name()+": "+c)
		}
	}
	return out
}

// Uncertainty is the largest of the rows' in milliseconds; nil: not known.
func (t *RunTable) Uncertainty() (out *float64) {
	for i := range t.Probes {
		if u := t.Probes[i].UncertaintyMS; u != nil && (out == nil || *u > *out) {
			out = u
		}
	}
	return out
}

// ProbeCertainty says how certain the delays of a table's probes are; empty where it
// has none.
func (t *RunTable) ProbeCertainty() string {
	if t.ProbeClock == nil || len(t.Probes) == 0 {
		return ""
	}
	said := t.clockCertainty()
	if names := t.processTimed(); len(names) > 0 {
		said = strings.TrimSpace(said + " Packets of " + strings.Join(names, ", ") + " arrived when the driver got them, because the kernel tells no time of their arrival: delays contain what the driver waited for a processor, without a bound.")
	}
	return said
}

func (t *RunTable) clockCertainty() string {
	switch c := t.ProbeClock; {
	case c.Shared:
		return "Both ends have one clock."
	case c.Unknown != "":
		return "Delays are those above the shortest one of each probe: " + c.Unknown + "."
	}
	u := t.Uncertainty()
	if u == nil {
		return ""
	}
	return fmt.Sprintf("The clocks of both ends were compared: every delay is uncertain by %s ms.", wording.Delay(u))
}

// processTimed names the probes whose times of arrival are not the kernel's.
func (t *RunTable) processTimed() (names []string) {
	for i := range t.Probes {
		if p := &t.Probes[i]; p.ProcessTimes && !slices.Contains(names, p.Label) {
			names = append(names, p.Label)
		}
	}
	return names
}
