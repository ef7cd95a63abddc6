package report

import (
	"fmt"
	"slices"
)

// SequenceIteration chooses the iteration that a report draws of a run, without its samples: the
// first in which every treatment has a valid trial, else the first of those with the most. nil:
// no trial with a transfer has begun.
func SequenceIteration(r *Run) *Sampled {
	all, begun, counted := map[string]bool{}, map[int]bool{}, map[int]map[string]bool{}
	var order []int
	for i := range r.Trials {
		t := &r.Trials[i]
		if r.ProbesAlone(t) {
			continue
		}
		all[t.Treatment] = true
		if len(t.Attempts) > 0 && !begun[t.Iteration] {
			begun[t.Iteration], counted[t.Iteration] = true, map[string]bool{}
			order = append(order, t.Iteration)
		}
		if t.Counted() != nil {
			counted[t.Iteration][t.Treatment] = true
		}
	}
	if len(order) == 0 {
		return nil
	}
	out := &Sampled{Iteration: order[0], Valid: len(counted[order[0]]), Treatments: len(all)}
	for _, n := range order {
		if len(counted[n]) > out.Valid {
			out.Iteration, out.Valid = n, len(counted[n])
		}
	}
	return out
}

// Sequence is the attempts a time–sequence diagram of an iteration shows: the
// last of each treatment's trial. The samples of these are what
// a drawing of it wants. Iteration 0 is the first of which anything is known. Trials of
// probes alone have no sequence.
func Sequence(r *Run, iteration int) (chosen int, trials []*Trial, err error) {
	for i := range r.Trials {
		t := &r.Trials[i]
		if len(t.Attempts) == 0 || r.ProbesAlone(t) || iteration != 0 && t.Iteration != iteration {
			continue
		}
		if iteration = t.Iteration; !slices.ContainsFunc(trials, func(o *Trial) bool { return o.Treatment == t.Treatment }) {
			trials = append(trials, t)
		}
	}
	if len(trials) == 0 {
		if iteration == 0 {
			return 0, nil, fmt.Errorf("no trial of run %s with a transfer has begun", r.ID)
		}
		return 0, nil, fmt.Errorf("no trial of iteration %d of run %s with a transfer has begun", iteration, r.ID)
	}
	return iteration, trials, nil
}

// ProbesAlone reports whether a trial of the run has no flows: its probes measure alone,
// and it has no throughput.
func (r *Run) ProbesAlone(t *Trial) bool {
	if r.Sheet == nil || t.Index < 0 || t.Index >= len(r.Sheet.Trials) {
		return false
	}
	spec := &r.Sheet.Trials[t.Index]
	return len(spec.Flows) == 0 && len(spec.Probes) > 0
}
