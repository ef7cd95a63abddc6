package report

import (
	"fmt"
	"slices"
	"time"
)

// Series is how one flow of an attempt went on, as its client's samples say.
type Series struct {
	Trial   int // index in the sheet
	Attempt int
	Flow    int
	Points  []SeriesPoint // in order of time
}

// SeriesPoint is one sample.
type SeriesPoint struct {
	Elapsed     time.Duration // since the transfer's clock started
	Bytes       int64         // acknowledged, or sent where Sent
	Sent        bool          // the protocol does not report what is acknowledged
	Retransmits *int64        // in all so far
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
