package report

import (
	"cmp"
	"math"
	"slices"

	"linktrial/internal/stats"
	"linktrial/internal/unit"
	"linktrial/orchestrator/plan"
)

// CodedBound is the name of the coded bound where a treatment may stand, as
// plan.Ideal is Ideal's.
const CodedBound = "coded-bound"

// bound is a sender that nobody is, on the channel realisation of a trial.
type bound struct {
	name, label string
	share       plan.Metric
	of          func(*observation) float64 // from the channel's start, where its clock starts
	transfer    func(*observation) float64 // by the transfer's clock
	unknown     string                     // why there is no value
}

// bounds are in the order in which charts have them.
var bounds = []bound{
	{plan.Ideal, "Ideal", MetricShareOfIdeal, idealOf, idealTransferOf, "Ideal is not known"},
	{CodedBound, "coded bound", MetricShareOfCodedBound, codedOf, codedTransferOf, "the coded bound is not known"},
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

// Limits are what the bounds would have reached where a treatment has a value: in the
// same trials, by the same clock, averaged in the same way. NaN: not known of all of
// these trials, or the metric has none.
type Limits struct{ Ideal, CodedBound float64 }

var noLimits = Limits{math.NaN(), math.NaN()}

func limits(of func(*bound) float64) Limits { return Limits{of(&bounds[0]), of(&bounds[1])} }

func (l Limits) scaled(by float64) Limits { return Limits{l.Ideal * by, l.CodedBound * by} }

// perKBps is 1 KB/s in the metric; 0: it is no throughput, or the bandwidth is not known.
func (s *summarised) perKBps(m plan.Metric) float64 {
	switch m {
	case plan.MetricKBps:
		return 1
	case plan.MetricKbitps:
		return 8 * unit.KB / 1e3
	case plan.MetricMbitps:
		return 8 * unit.KB / 1e6
	case plan.MetricNormalised:
		if b := s.table.BandwidthBitsPerSecond; b != nil {
			return 8 * unit.KB / *b
		}
	}
	return 0
}

// limits are the bounds' means in a metric over the trials of a treatment.
func (s *summarised) limits(m plan.Metric, treatment, reference string) Limits {
	i := s.row(treatment)
	if i < 0 || len(s.samples[i].valid) == 0 {
		return noLimits
	}
	sm := &s.samples[i]
	if factor := s.perKBps(m); factor > 0 {
		return limits(func(b *bound) float64 { return sm.meanOfAll(boundRateOf(b.transfer)) }).scaled(factor)
	}
	switch m {
	case MetricShareOfIdeal: // whose own share is 1
		return Limits{math.NaN(), sm.meanOfAll(func(o *observation) float64 { return stats.ShareOfBound(o.ideal, o.coded) })}
	case plan.MetricGain:
		k := s.row(cmp.Or(reference, s.table.Reference))
		if k < 0 {
			return noLimits
		}
		times := s.samples[k].by(elapsedOf)
		return limits(func(b *bound) float64 {
			return stats.GainPercent(1, stats.RatioOfMeans(stats.PairUp(times, sm.by(b.transfer))).Ratio)
		})
	}
	return noLimits
}

// boundSample is the transfers of a bound, one an iteration: all treatments of
// an iteration met the same channel. It is Ideal where a plan's published values name
// it, over all iterations and with nothing before its clock: a treatment of which only
// some trials are valid may be above it. Beside treatments there are [Limits].
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
