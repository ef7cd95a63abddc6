package report

import (
	"cmp"
	"math"
	"slices"

	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/unit"
	"linktrial/orchestrator/plan"
	"linktrial/orchestrator/stats"
)

// observation is what one valid trial gave.
type observation struct {
	iteration             int
	kbps                  float64 // of all flows
	elapsed, connect      float64 // seconds
	ideal                 float64 // seconds; NaN where it is not known
	sizeBytes             int64
	retransmits, timeouts *int64
	flows                 []flowRate
}

// flowRate is the throughput of one flow, or of one on/off source.
type flowRate struct {
	treatment string
	kbps      float64
}

// whole is the time that Ideal's is comparable with: its clock starts with the
// channel's, before the connect.
func (o *observation) whole() float64 { return o.connect + o.elapsed }

func observe(t *Trial, a *Attempt) observation {
	o := observation{iteration: t.Iteration, kbps: a.ThroughputBytesPerSecond() / unit.KB, elapsed: a.Elapsed.Seconds(), connect: a.Connect.Seconds(),
		ideal: math.NaN(), sizeBytes: a.SizeBytes, retransmits: a.Retransmits, timeouts: a.Timeouts}
	if a.Ideal > 0 {
		o.ideal = a.Ideal.Seconds()
	}
	window := a.window().Seconds()
	sources := map[int]int{} // place in o.flows of an on/off source
	for _, f := range a.Flows {
		if f.Session > 0 {
			k, known := sources[f.Session]
			if !known {
				k = len(o.flows)
				sources[f.Session], o.flows = k, append(o.flows, flowRate{treatment: f.Treatment})
			}
			// Its idle times count: the source's share of the trial's time.
			if window > 0 {
				o.flows[k].kbps += f.inTime() / unit.KB / window
			} else {
				o.flows[k].kbps += float64(f.SizeBytes) / unit.KB / o.elapsed
			}
			continue
		}
		rate := 0.0
		if f.Elapsed > 0 {
			rate = float64(f.SizeBytes) / unit.KB / f.Elapsed.Seconds()
		}
		o.flows = append(o.flows, flowRate{f.Treatment, rate})
	}
	return o
}

// sample is what one treatment's trials of a run gave.
type sample struct {
	trials, failed, notEnded, extra int
	failures                        []Failure
	valid                           []observation // in the order of the sheet
}

func takeSample(r *Run, trials []*Trial) sample {
	s := sample{trials: len(trials)}
	count := map[Failure]int{}
	for _, t := range trials {
		s.extra += max(0, len(t.Attempts)-1)
		for i := range t.Attempts {
			if a := &t.Attempts[i]; a.Verdict != "" && !a.valid() && !waits(r, a) {
				count[Failure{Verdict: a.Verdict, Reason: a.why()}]++
			}
		}
		a := t.counted()
		switch {
		case a != nil:
			s.valid = append(s.valid, observe(t, a))
		case t.Verdict == "" || len(t.Attempts) > 0 && waits(r, &t.Attempts[len(t.Attempts)-1]):
			s.notEnded++
		default:
			s.failed++
		}
	}
	for f, n := range count {
		f.Attempts = n
		s.failures = append(s.failures, f)
	}
	slices.SortFunc(s.failures, func(a, b Failure) int {
		return cmp.Or(b.Attempts-a.Attempts, cmp.Compare(a.Verdict, b.Verdict), cmp.Compare(a.Reason, b.Reason))
	})
	return s
}

// values takes one figure of every valid trial and leaves out what has none.
func (s *sample) values(of func(*observation) float64) []float64 {
	xs := make([]float64, 0, len(s.valid))
	for i := range s.valid {
		if x := of(&s.valid[i]); !math.IsNaN(x) {
			xs = append(xs, x)
		}
	}
	return xs
}

// by is one figure of every valid trial by its iteration.
func (s *sample) by(of func(*observation) float64) map[int]float64 {
	m := make(map[int]float64, len(s.valid))
	for i := range s.valid {
		m[s.valid[i].iteration] = of(&s.valid[i])
	}
	return m
}

func rateOf(o *observation) float64    { return o.kbps }
func elapsedOf(o *observation) float64 { return o.elapsed }
func connectOf(o *observation) float64 { return o.connect }
func wholeOf(o *observation) float64   { return o.whole() }
func shareOf(o *observation) float64   { return stats.ShareOfIdeal(o.ideal, o.whole()) }

func retransmitsOf(o *observation) float64 { return number(o.retransmits) }
func timeoutsOf(o *observation) float64    { return number(o.timeouts) }

func number(n *int64) float64 {
	if n == nil {
		return math.NaN()
	}
	return float64(*n)
}

// jainOf is the fairness among the flows, NaN below two.
func jainOf(o *observation) float64 {
	if len(o.flows) < 2 {
		return math.NaN()
	}
	xs := make([]float64, len(o.flows))
	for i, f := range o.flows {
		xs[i] = f.kbps
	}
	return stats.Jain(xs)
}

// flowOf is the mean of the flows of a treatment, of all of them for "".
func flowOf(treatment string) func(*observation) float64 {
	return func(o *observation) float64 {
		var xs []float64
		for _, f := range o.flows {
			if treatment == "" || f.treatment == treatment {
				xs = append(xs, f.kbps)
			}
		}
		if len(o.flows) == 0 && treatment == "" {
			return o.kbps
		}
		return stats.Mean(xs)
	}
}

// counted is the attempt whose figure the trial stands with, or nil.
func (t *Trial) counted() *Attempt {
	if n := len(t.Attempts); n > 0 && t.Attempts[n-1].valid() {
		return &t.Attempts[n-1]
	}
	return nil
}

func (a *Attempt) valid() bool {
	return a.Verdict == journal.Succeeded && a.Verified && a.Elapsed > 0
}

// waits tells whether the server's word on a transfer may still come.
func waits(r *Run, a *Attempt) bool {
	ended := r.State == "completed" || r.State == "aborted" || r.State == "stopped"
	return !ended && a.Verdict == journal.Succeeded && !a.Verified
}

// why is the attempt's reason, or what is wrong with a success.
func (a *Attempt) why() string {
	switch {
	case a.Verdict != journal.Succeeded || a.Reason != "":
		return a.Reason
	case !a.Verified:
		return "unverified"
	default:
		return "no-elapsed-time"
	}
}

// summarised is a run with its table and, for each row of it, what the row was
// made from.
type summarised struct {
	run     *Run
	table   RunTable
	samples []sample
}

// estimate is a metric's mean with the variance of that mean (NaN where there
// is none) and its degrees of freedom.
type estimate struct {
	mean, variance, degrees float64
	n                       int // trials
}

var noEstimate = estimate{mean: math.NaN(), variance: math.NaN()}

func estimateOf(xs []float64) estimate {
	e := estimate{mean: stats.Mean(xs), variance: math.NaN(), n: len(xs), degrees: float64(len(xs) - 1)}
	if sd := stats.StdDev(xs); !math.IsNaN(sd) {
		e.variance = sd * sd / float64(len(xs))
	}
	return e
}

func (e estimate) scaled(by float64) estimate {
	e.mean, e.variance = e.mean*by, e.variance*by*by
	return e
}

func (e estimate) interval() *Range {
	return interval(stats.OfMean(e.mean, e.variance, e.degrees, level))
}

// half is half the interval's width, 0 where there is none.
func (e estimate) half() float64 {
	if r := e.interval(); r != nil {
		return (r.High - r.Low) / 2
	}
	return 0
}

// together is the mean of several runs' means, each run counting alike, with
// the degrees of freedom after Welch and Satterthwaite.
func together(es []estimate) estimate {
	if len(es) == 0 {
		return noEstimate
	}
	var sum, variance, denominator float64
	n := 0
	for _, e := range es {
		sum += e.mean
		variance += e.variance
		denominator += e.variance * e.variance / e.degrees
		n += e.n
	}
	k := float64(len(es))
	out := estimate{mean: sum / k, variance: variance / k / k, n: n, degrees: variance * variance / denominator}
	if variance == 0 {
		out.degrees = float64(max(1, n-len(es)))
	}
	return out
}

// estimate is a metric of one treatment (or mix, or plan.Ideal); where there
// is none, why.
func (s *summarised) estimate(m plan.Metric, treatment, reference string) (estimate, string) {
	row := func(name string) int {
		return slices.IndexFunc(s.table.Rows, func(r Row) bool { return r.Treatment == name })
	}
	if m == plan.MetricFlowMbitps {
		return s.flowEstimate(treatment, row(treatment))
	}
	i := row(treatment)
	var sm *sample
	switch {
	case treatment == plan.Ideal:
		sm = s.idealSample()
	case i < 0:
		return noEstimate, notPart
	case s.table.Rows[i].Missing != "":
		return noEstimate, "missing: " + s.table.Rows[i].Missing
	default:
		sm = &s.samples[i]
	}
	if m == plan.MetricCompleted {
		if ended := len(sm.valid) + sm.failed; ended > 0 {
			return estimate{mean: float64(len(sm.valid)) / float64(ended), variance: math.NaN(), n: ended}, ""
		}
		return noEstimate, "no trial has ended"
	}
	if len(sm.valid) == 0 {
		if treatment == plan.Ideal {
			return noEstimate, "Ideal is not known"
		}
		return noEstimate, sm.noFigure()
	}
	rate := estimateOf(sm.values(rateOf))
	switch m {
	case plan.MetricKBps:
		return rate, ""
	case plan.MetricKbitps:
		return rate.scaled(8 * unit.KB / 1e3), ""
	case plan.MetricMbitps:
		return rate.scaled(8 * unit.KB / 1e6), ""
	case plan.MetricNormalised:
		if b := s.table.BandwidthBitsPerSecond; b != nil {
			return rate.scaled(8 * unit.KB / *b), ""
		}
		return noEstimate, "the bandwidth is not known"
	case plan.MetricTimeouts:
		if xs := sm.values(timeoutsOf); len(xs) > 0 {
			return estimateOf(xs), ""
		}
		return noEstimate, "the protocol does not count timeouts"
	case plan.MetricGain:
		j := row(cmp.Or(reference, s.table.Reference))
		if j < 0 {
			return noEstimate, "the reference is not part of the run"
		}
		if s.table.Rows[j].Missing != "" {
			return noEstimate, "the reference is missing: " + s.table.Rows[j].Missing
		}
		ratio := stats.RatioOfMeans(stats.PairUp(s.samples[j].by(elapsedOf), sm.by(elapsedOf)))
		if math.IsNaN(ratio.Ratio) {
			return noEstimate, "no iteration has both the reference's time and this one's"
		}
		return estimate{mean: stats.GainPercent(1, ratio.Ratio), variance: 1e4 * ratio.Variance, degrees: float64(ratio.Pairs - 1), n: ratio.Pairs}, ""
	}
	return noEstimate, "no such metric: " + string(m)
}

// noFigure says why a treatment that has trials gave nothing.
func (s *sample) noFigure() string {
	switch {
	case s.failed > 0 && len(s.failures) > 0:
		return "all of " + plural(s.failed, "trial", "trials") + " failed: " + s.failures[0].name()
	case s.notEnded > 0:
		return "no trial has ended"
	}
	return "no trials"
}

// flowEstimate is the mean over a treatment's flows: in mixes, else among
// flows of its own kind.
func (s *summarised) flowEstimate(treatment string, row int) (estimate, string) {
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
			if s.isMix(r.Treatment) && r.Missing != "" {
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
		return noEstimate, s.samples[row].noFigure()
	}
	return estimateOf(xs).scaled(8 * unit.KB / 1e6), ""
}

func (s *summarised) isMix(name string) bool {
	return s.run.Sheet != nil && slices.ContainsFunc(s.run.Sheet.Mixes, func(m runsheet.Mix) bool { return m.Name == name })
}

// idealSample is the all-knowing sender's transfers, one an iteration: all
// treatments of an iteration met the same channel.
func (s *summarised) idealSample() *sample {
	var out sample
	seen := map[int]bool{}
	for i := range s.samples {
		for _, o := range s.samples[i].valid {
			if math.IsNaN(o.ideal) || seen[o.iteration] {
				continue
			}
			seen[o.iteration] = true
			out.valid = append(out.valid, observation{iteration: o.iteration, elapsed: o.ideal, kbps: float64(o.sizeBytes) / unit.KB / o.ideal, ideal: o.ideal, sizeBytes: o.sizeBytes})
		}
	}
	out.trials = len(out.valid)
	slices.SortFunc(out.valid, func(a, b observation) int { return a.iteration - b.iteration })
	return &out
}
