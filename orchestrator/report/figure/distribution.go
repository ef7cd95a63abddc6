package figure

import (
	"cmp"
	"fmt"
	"slices"

	"linktrial/internal/unit"
	"linktrial/orchestrator/report"
	"linktrial/orchestrator/report/wording"
)

// Distribution draws the empirical distribution of throughput: for each run and
// treatment the share of the valid trials that reached no more than so much.
func Distribution(a *report.Analysis) ([]byte, error) {
	return (&stepFigure{
		title: "Distribution of throughput", share: "share of trials", none: "no valid trials", of: ratesOf,
		unit: func(highest float64) (string, func(float64) float64) {
			rate := wording.RateUnitFor(highest)
			return "Throughput (" + rate.Name + ")", rate.In
		},
		hint: func(r *report.Row, s step, highest float64) string {
			rate := wording.RateUnitFor(highest)
			return fmt.Sprintf("%s: %d of %d trials at most %s %s", wording.Clean(r.Label), s.trials, s.of, rate.Write(&s.at), rate.Name)
		},
		note: func(largest float64) string {
			return "Of valid trials; " + wording.RateUnitFor(largest).Meaning() + "."
		},
	}).draw(a)
}

// ratesOf is a step a valid trial, KB/s.
func ratesOf(t *report.RunTable, r *report.Run) [][]step {
	out := make([][]step, len(t.Rows))
	for i := range r.Trials {
		trial := &r.Trials[i]
		k := slices.IndexFunc(t.Rows, func(r report.Row) bool { return r.Treatment == trial.Treatment })
		if a := trial.Counted(); a != nil && k >= 0 {
			out[k] = append(out[k], step{at: a.ThroughputBytesPerSecond() / unit.KB})
		}
	}
	for _, steps := range out {
		slices.SortFunc(steps, func(a, b step) int { return cmp.Compare(a.at, b.at) })
		for i := range steps {
			steps[i].trials, steps[i].of = i+1, len(steps)
		}
	}
	return out
}
