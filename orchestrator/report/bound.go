package report

import (
	"math"
	"slices"

	"linktrial/internal/unit"
	"linktrial/orchestrator/plan"
)

// CodedBound is the name of the coded bound where a treatment may stand, as
// plan.Ideal is Ideal's.
const CodedBound = "coded-bound"

// MetricShareOfIdeal and MetricShareOfCodedBound are the means of a bound's time over
// the time taken. No paper publishes them; charts have them beside the metrics of plans.
const (
	MetricShareOfIdeal      plan.Metric = "share-of-ideal"
	MetricShareOfCodedBound plan.Metric = "share-of-coded-bound"
)

// bound is a sender that nobody is, on the channel realisation of a trial.
type bound struct {
	name, label string
	share       plan.Metric
	of          func(*observation) float64
	unknown     string // why there is no figure
}

// bounds are in the order in which charts have them.
var bounds = []bound{
	{plan.Ideal, "Ideal", MetricShareOfIdeal, idealOf, "Ideal is not known"},
	{CodedBound, "coded bound", MetricShareOfCodedBound, codedOf, "the coded bound is not known"},
}

// Bounds are the names of the bounds, in the order in which charts have them.
func Bounds() []string {
	names := make([]string, len(bounds))
	for i := range bounds {
		names[i] = bounds[i].name
	}
	return names
}

func boundNamed(name string) *bound {
	if i := slices.IndexFunc(bounds, func(b bound) bool { return b.name == name }); i >= 0 {
		return &bounds[i]
	}
	return nil
}

// boundOfShare is the bound that a metric gives the share of, or nil.
func boundOfShare(m plan.Metric) *bound {
	if i := slices.IndexFunc(bounds, func(b bound) bool { return b.share == m }); i >= 0 {
		return &bounds[i]
	}
	return nil
}

// boundsOn are the bounds that a chart of a metric has a curve of: none where
// the metric is not of a bound's; of shares of a bound, only those above it.
func boundsOn(m plan.Metric) []string {
	switch m {
	case plan.MetricTimeouts, plan.MetricCompleted, plan.MetricFlowMbitps, MetricShareOfCodedBound:
		return nil
	case MetricShareOfIdeal:
		return []string{CodedBound}
	}
	return Bounds()
}

// boundSample is the transfers of a bound, one an iteration: all treatments of
// an iteration met the same channel.
func (s *summarised) boundSample(of func(*observation) float64) *sample {
	var out sample
	seen := map[int]bool{}
	for i := range s.samples {
		for _, o := range s.samples[i].valid {
			elapsed := of(&o)
			if math.IsNaN(elapsed) || seen[o.iteration] {
				continue
			}
			seen[o.iteration] = true
			out.valid = append(out.valid, observation{iteration: o.iteration, elapsed: elapsed, kbps: float64(o.sizeBytes) / unit.KB / elapsed, ideal: o.ideal, coded: o.coded, sizeBytes: o.sizeBytes})
		}
	}
	out.trials = len(out.valid)
	slices.SortFunc(out.valid, func(a, b observation) int { return a.iteration - b.iteration })
	return &out
}
