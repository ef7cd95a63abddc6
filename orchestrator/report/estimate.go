package report

import (
	"cmp"
	"math"
	"slices"

	"linktrial/internal/stats"
	"linktrial/internal/unit"
	"linktrial/orchestrator/plan"
	"linktrial/orchestrator/report/wording"
)

// Estimate is a metric's mean with the variance of that mean (NaN where there
// is none) and its degrees of freedom.
type Estimate struct {
	Mean              float64
	N                 int // trials
	variance, degrees float64
	positive          bool // a mean of values that are never negative
}

var noEstimate = Estimate{Mean: math.NaN(), variance: math.NaN()}

func estimateOf(xs []float64) Estimate {
	e := Estimate{Mean: stats.Mean(xs), variance: math.NaN(), N: len(xs), degrees: float64(len(xs) - 1), positive: len(xs) > 0 && slices.Min(xs) >= 0}
	if sd := stats.StdDev(xs); !math.IsNaN(sd) {
		e.variance = sd * sd / float64(len(xs))
	}
	return e
}

func (e Estimate) scaled(by float64) Estimate {
	e.Mean, e.variance = e.Mean*by, e.variance*by*by
	return e
}

// Interval is the 95 % confidence interval of the mean (Student's t); nil
// where there is none. Of values that are never negative it ends at 0.
func (e Estimate) Interval() *Range {
	i := stats.OfMean(e.Mean, e.variance, e.degrees, level)
	if e.positive {
		i.Low = max(0, i.Low)
	}
	return interval(i)
}

// Half is half the width that the interval has without its end at 0, 0 where there is
// none.
func (e Estimate) Half() float64 {
	if r := e.Interval(); r != nil {
		return r.High - e.Mean
	}
	return 0
}

// together is the mean of several runs' means, each run counting alike, with
// the degrees of freedom after Welch and Satterthwaite.
func together(es []Estimate) Estimate {
	if len(es) == 0 {
		return noEstimate
	}
	var sum, variance, denominator float64
	n, positive := 0, true
	for _, e := range es {
		positive = positive && e.positive
		sum += e.Mean
		variance += e.variance
		denominator += e.variance * e.variance / e.degrees
		n += e.N
	}
	k := float64(len(es))
	out := Estimate{Mean: sum / k, variance: variance / k / k, N: n, degrees: variance * variance / denominator, positive: positive}
	if variance == 0 {
		out.degrees = float64(max(1, n-len(es)))
	}
	return out
}

// Estimate is a metric of one treatment (or mix, or bound); where there
// is none, why.
func (s *summarised) estimate(m plan.Metric, treatment, reference string) (Estimate, string) {
	if m == plan.MetricFlowMbitps {
		return s.flowEstimate(treatment, s.row(treatment))
	}
	sm, why := s.sampleOf(treatment)
	if sm == nil {
		return noEstimate, why
	}
	if m == plan.MetricCompleted {
		return sm.completed()
	}
	if len(sm.valid) == 0 {
		if b := boundNamed(treatment); b != nil {
			return noEstimate, b.unknown
		}
		return noEstimate, sm.noValue()
	}
	if factor := s.perKBps(m); factor > 0 {
		return estimateOf(sm.values(rateOf)).scaled(factor), ""
	}
	switch m {
	case plan.MetricNormalised:
		return noEstimate, "the bandwidth is not known"
	case MetricShareOfIdeal, MetricShareOfCodedBound:
		b := boundOfShare(m)
		if xs := sm.values(shareOf(b.of)); len(xs) > 0 {
			return estimateOf(xs), ""
		}
		return noEstimate, b.unknown
	case plan.MetricTimeouts:
		if xs := sm.values(timeoutsOf); len(xs) > 0 {
			return estimateOf(xs), ""
		}
		return noEstimate, "the protocol does not count timeouts"
	case plan.MetricGain:
		return s.gain(sm, cmp.Or(reference, s.table.Reference))
	}
	return noEstimate, "no such metric: " + string(m)
}

// sampleOf is the trials of a treatment; nil and why where there can be none.
func (s *summarised) sampleOf(treatment string) (*sample, string) {
	if b := boundNamed(treatment); b != nil {
		return s.boundSample(b.of), ""
	}
	i := s.row(treatment)
	if i < 0 {
		return nil, notPart
	}
	if missing := s.table.Rows[i].Missing; missing != "" {
		return nil, "missing: " + missing
	}
	return &s.samples[i], ""
}

// completed is the share of ended trials that are valid.
func (s *sample) completed() (Estimate, string) {
	ended := len(s.valid) + s.failed
	if ended == 0 {
		return noEstimate, "no trial has ended"
	}
	return Estimate{Mean: float64(len(s.valid)) / float64(ended), variance: math.NaN(), N: ended}, ""
}

// gain is by how many percent the transfers of sm are shorter than those of the
// reference, paired by iteration.
func (s *summarised) gain(sm *sample, reference string) (Estimate, string) {
	i := s.row(reference)
	if i < 0 {
		return noEstimate, "the reference is not part of the run"
	}
	if missing := s.table.Rows[i].Missing; missing != "" {
		return noEstimate, "the reference is missing: " + missing
	}
	ratio := stats.RatioOfMeans(stats.PairUp(s.samples[i].by(elapsedOf), sm.by(elapsedOf)))
	if math.IsNaN(ratio.Ratio) {
		return noEstimate, "no iteration has both the reference's time and this one's"
	}
	return Estimate{Mean: stats.GainPercent(1, ratio.Ratio), variance: 1e4 * ratio.Variance, degrees: float64(ratio.Pairs - 1), N: ratio.Pairs}, ""
}

// noValue says why a treatment that has trials gave nothing.
func (s *sample) noValue() string {
	switch {
	case s.failed > 0 && len(s.failures) > 0:
		return "all of " + wording.Plural(s.failed, "trial", "trials") + " failed: " + s.failures[0].Name()
	case s.notEnded > 0:
		return "no trial has ended"
	}
	return "no trials"
}

// flowEstimate is the mean over a treatment's flows: in mixes, else among
// flows of its own kind.
func (s *summarised) flowEstimate(treatment string, row int) (Estimate, string) {
	own := flowOf("")
	if row < 0 || s.samples[row].trials == 0 && s.table.Rows[row].Missing == "" {
		own = flowOf(treatment)
		row = slices.IndexFunc(s.samples, func(m sample) bool {
			return len(m.valid) > 0 && !math.IsNaN(own(&m.valid[0]))
		})
	}
	if row < 0 {
		// Nobody knows of whose flows a mix is that could not be run.
		for _, r := range s.table.Rows {
			if s.run.isMix(r.Treatment) && r.Missing != "" {
				return noEstimate, "missing: " + r.Missing
			}
		}
		return noEstimate, "no trial with such flows is valid"
	}
	if why := s.table.Rows[row].Missing; why != "" {
		return noEstimate, "missing: " + why
	}
	xs := s.samples[row].values(own)
	if len(xs) == 0 {
		return noEstimate, s.samples[row].noValue()
	}
	return estimateOf(xs).scaled(8 * unit.KB / 1e6), ""
}

const notPart = "not part of the run"
