package report

import (
	"slices"
	"strings"

	"linktrial/orchestrator/report/wording"
)

// leaveOut takes what [Options.LeaveOut] names out of what is shown, after everything is
// computed: statistics and conclusions are of all treatments, as a page has them that hides
// some. The runs' sheets, which are signed, stay whole.
func (v *Analysis) leaveOut() {
	if len(v.options.LeaveOut) == 0 {
		return
	}
	for i := range v.Tables {
		t := &v.Tables[i] // v.runs has a copy, whose samples go with its rows
		t.referenceLabel = t.ReferenceLabel()
		t.Rows = without(t.Rows, func(r *Row) bool {
			gone := v.leavesOut(r.Treatment)
			if gone {
				t.leftOutNotEnded += r.NotEnded
			}
			return gone
		})
		t.Probes = without(t.Probes, func(r *ProbeRow) bool { return v.leavesOut(r.Beside) || v.leavesOut(r.Probe) })
		run := &v.Dataset.Runs[i]
		run.Trials = without(run.Trials, func(t *Trial) bool { return v.leavesOut(t.Treatment) })
		run.Breaches = without(run.Breaches, func(b *Breach) bool { return v.leavesOut(b.Treatment) })
	}
	v.Dataset.Published = without(v.Dataset.Published, func(p *PublishedRow) bool { return v.leavesOut(p.Treatment) })
	note := "Left out on request: " + wording.Clean(strings.Join(v.options.LeaveOut, ", ")) + ". Statistics and conclusions are of all treatments."
	v.Dataset.Notes = append(slices.Clone(v.Dataset.Notes), note)
}

// leavesOut reports whether a treatment or mix is not shown.
func (v *Analysis) leavesOut(treatment string) bool {
	return slices.Contains(v.options.LeaveOut, treatment)
}

// without is a copy of a list, less what gone reports.
func without[T any](list []T, gone func(*T) bool) []T {
	if list == nil {
		return nil
	}
	out := make([]T, 0, len(list))
	for i := range list {
		if !gone(&list[i]) {
			out = append(out, list[i])
		}
	}
	return out
}
