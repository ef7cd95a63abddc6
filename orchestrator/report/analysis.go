package report

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"linktrial/executor/journal"
	"linktrial/orchestrator/plan"
	"linktrial/orchestrator/report/wording"
)

// Analysis is a dataset with all that follows from it: what every table,
// figure and export is made from, here and in the API.
type Analysis struct {
	Dataset *Dataset   // times in UTC
	Tables  []RunTable // of the runs, in their order
	runs    []summarised
	options Options
	order   []string // of all treatments, also of those that are left out
}

// Options of an [Analysis].
type Options struct {
	// Bootstrap asks for bootstrap intervals, which take longer than all else.
	Bootstrap bool
	// Reference is the treatment that the others are held against, in runs that
	// have it; empty: the first of each run.
	Reference string
	// Axis and Metric are what [Analysis.Charts] draws; without either, it chooses
	// by the published values.
	Axis   string
	Metric plan.Metric
	// Part is which drawing of a figure of many panels is wanted, from 1; 0: the first.
	Part int
	// LeaveOut are treatments and mixes that are not shown.
	LeaveOut []string
}

// note adds a note to the dataset, unless it was read from an export that has it.
func (v *Analysis) note(text string) {
	if !slices.Contains(v.Dataset.Notes, text) {
		v.Dataset.Notes = append(slices.Clone(v.Dataset.Notes), text)
	}
}

// noteUnnamed adds which runs used a radio that nobody has named.
func (v *Analysis) noteUnnamed() {
	if n := v.Dataset.Unnamed(); n > 0 {
		v.note(fmt.Sprintf("Measured over a %s: %d of %s. The radio that the plan names there is not vouched for, and published values are not held against them.",
			journal.PlaceUnnamed, n, wording.Plural(len(v.Dataset.Runs), "run", "runs")))
	}
}

// Analyse works on all processors: a campaign may have thousands of runs, and
// bootstrap intervals take their time. It leaves the dataset as it is.
func Analyse(ds *Dataset, o Options) *Analysis {
	a := &Analysis{Dataset: inUTC(ds), options: o}
	for _, x := range a.Dataset.imports() {
		a.note(x.note())
	}
	a.noteUnnamed()
	if n := a.Dataset.estimated(); n > 0 {
		a.note(fmt.Sprintf("The throughput of %s with several flows is an estimate from each flow's mean rate, because the server's samples were gone when the value was first made of them.", wording.Plural(n, "attempt", "attempts")))
	}
	a.runs = make([]summarised, len(a.Dataset.Runs))
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(a.runs)) {
		workers.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(a.runs); i = int(next.Add(1)) - 1 {
				a.runs[i] = summarizeRun(&a.Dataset.Runs[i], a.Dataset.Published, o.Reference, o.Bootstrap)
			}
		})
	}
	workers.Wait()
	for i := range a.runs {
		a.Tables = append(a.Tables, a.runs[i].table)
	}
	a.order = treatmentOrder(a.Tables)
	a.leaveOut()
	return a
}

// TreatmentOrder gives each treatment its place among all of the runs, from 0: its colour and
// marker in every figure, whatever is left out.
func (v *Analysis) TreatmentOrder() map[string]int {
	out := make(map[string]int, len(v.order))
	for i, name := range v.order {
		out[name] = i
	}
	return out
}

// treatmentOrder has what ran beside probes and is in no row after the rows of all runs.
func treatmentOrder(tables []RunTable) (order []string) {
	known := map[string]bool{"": true} // probes alone
	add := func(name string) {
		if !known[name] {
			known[name] = true
			order = append(order, name)
		}
	}
	for i := range tables {
		for j := range tables[i].Rows {
			add(tables[i].Rows[j].Treatment)
		}
	}
	for i := range tables {
		for j := range tables[i].Probes {
			add(tables[i].Probes[j].Beside)
		}
	}
	return order
}

// Part is which drawing of a figure of many panels is wanted, from 1; 0: the first.
func (v *Analysis) Part() int { return v.options.Part }

// WithPart is the same results, of whose figures another drawing is wanted.
func (v *Analysis) WithPart(number int) *Analysis {
	out := *v
	out.options.Part = number
	return &out
}

// estimated is how many attempts count with an estimate of their throughput.
func (ds *Dataset) estimated() (n int) {
	for i := range ds.Runs {
		for j := range ds.Runs[i].Trials {
			t := &ds.Runs[i].Trials[j]
			if a := t.Counted(); a != nil && a.Estimated() && !ds.Runs[i].underWay() {
				n++
			}
		}
	}
	return n
}

// Summarize makes a table of every run, in the order of the dataset.
func Summarize(ds *Dataset) []RunTable { return Analyse(ds, Options{Bootstrap: true}).Tables }

// inUTC is a copy whose times are UTC: bytes must not depend on the time zone of
// the machine that writes them.
func inUTC(ds *Dataset) *Dataset {
	utc := func(t *time.Time) { *t = t.UTC().Round(0) }
	out := *ds
	utc(&out.Created)
	out.Runs = slices.Clone(ds.Runs)
	for i := range out.Runs {
		r := &out.Runs[i]
		utc(&r.Started)
		utc(&r.Ended)
		r.Trials = slices.Clone(r.Trials)
		for j := range r.Trials {
			t := &r.Trials[j]
			t.Attempts = slices.Clone(t.Attempts)
			for k := range t.Attempts {
				utc(&t.Attempts[k].Started)
			}
		}
	}
	return &out
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
