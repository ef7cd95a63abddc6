package report

import (
	"cmp"
	"math"
	"slices"
	"time"

	"linktrial/executor/credible"
	"linktrial/executor/journal"
	"linktrial/internal/stats"
	"linktrial/internal/unit"
	"linktrial/orchestrator/plan"
)

// observation is what one valid trial gave.
type observation struct {
	iteration             int
	kbps                  float64 // of all flows
	elapsed, connect      float64 // seconds
	ideal, coded          float64 // seconds; NaN where they are not known
	idealTransfer         float64 // of ideal, what the transfer's clock would have shown
	codedTransfer         float64
	sizeBytes             int64
	retransmits, timeouts *int64
	flows                 []flowRate
}

// flowRate is the throughput of one flow, or of one on/off source.
type flowRate struct {
	treatment string
	kbps      float64
}

// whole is the time that a bound's is comparable with: its clock starts with the
// channel's, before the connect.
func (o *observation) whole() float64 { return o.connect + o.elapsed }

// observe takes the values of a valid attempt; least is the least time that the
// emulated radios need for its transfer, 0 where that is not known.
func observe(t *Trial, a *Attempt, least time.Duration) observation {
	o := observation{iteration: t.Iteration, kbps: a.ThroughputBytesPerSecond() / unit.KB, elapsed: a.Elapsed.Seconds(), connect: a.Connect.Seconds(),
		ideal: known(a.Ideal), coded: known(a.CodedBound), sizeBytes: a.SizeBytes, retransmits: a.Retransmits, timeouts: a.Timeouts}
	// What a valid transfer was ahead of Ideal by passed before its driver connected,
	// some milliseconds within the tolerance of the rule that holds it against Ideal.
	fastest := min(o.elapsed, least.Seconds())
	o.idealTransfer = min(o.elapsed, transferOf(o.ideal, o.connect, fastest))
	o.codedTransfer = max(o.idealTransfer, transferOf(o.coded, o.connect, fastest))
	sources := map[int]int{} // place in o.flows of an on/off source
	for i, f := range a.Flows {
		if f.Session > 0 {
			k, known := sources[f.Session]
			if !known {
				k = len(o.flows)
				sources[f.Session], o.flows = k, append(o.flows, flowRate{treatment: f.Treatment})
			}
			// Its idle times count: the source's share of the trial's time.
			o.flows[k].kbps += a.shareOf(i) / unit.KB
			continue
		}
		o.flows = append(o.flows, flowRate{f.Treatment, a.rateOf(i) / unit.KB})
	}
	return o
}

// delivered is what became of a trial that tells of its protocol, whatever its outcome.
type delivered struct {
	iteration int
	wait      stats.Wait // seconds from the first attempt to connect until the payload was there
	bytes     int64      // delivered
	spent     float64    // seconds, of all attempts that tell of the protocol
}

// horizon is until when a delivery is waited for. 0: nobody knows it,
// or times bound the transfers of the trial, which end whether or not anything was delivered.
func (r *Run) horizon(t *Trial) time.Duration {
	if r.Sheet == nil {
		return 0
	}
	if t.Index >= 0 && t.Index < len(r.Sheet.Trials) {
		for _, f := range r.Sheet.Trials[t.Index].Flows {
			if f.Duration > 0 || f.Session > 0 {
				return 0
			}
		}
	}
	return r.Sheet.Limits.DeliveryHorizon()
}

// deliver is when the payload of an ended trial that is not excluded was there. What earlier
// attempts took that the protocol failed was waited for, too; those that were invalid were
// not the protocol's. A protocol that gave up never delivers: it counts as waited for up to
// the horizon, however early it failed, or giving up early would look like delivering later.
func deliver(t *Trial, horizon time.Duration) delivered {
	d := delivered{iteration: t.Iteration, wait: stats.Wait{Time: horizon.Seconds()}}
	for i := range t.Attempts {
		a := &t.Attempts[i]
		last := i == len(t.Attempts)-1
		switch {
		case last && a.Valid():
			d.spent += (a.Connect + a.Elapsed).Seconds()
			d.wait, d.bytes = stats.Wait{Time: d.spent, Came: true}, a.SizeBytes
		case last || a.Verdict == journal.Failed || a.Verdict == journal.TimedOut:
			d.spent += a.Duration.Seconds()
		}
	}
	return d
}

// least is the least time that the emulated radios need for the one flow of an
// attempt; 0 where they are not known.
func (r *Run) least(t *Trial, a *Attempt) time.Duration {
	if r.Sheet == nil || r.Sheet.Network == nil || a.Ideal <= 0 || t.Index < 0 || t.Index >= len(r.Sheet.Trials) || len(r.Sheet.Trials[t.Index].Flows) != 1 {
		return 0
	}
	f := &r.Sheet.Trials[t.Index].Flows[0]
	return credible.LeastOfBoth(r.Sheet.Network, &credible.Flow{From: f.From, To: f.To, SizeBytes: a.SizeBytes})
}

// known is a time in seconds, NaN for none.
func known(d time.Duration) float64 {
	if d <= 0 {
		return math.NaN()
	}
	return d.Seconds()
}

// sample is what one treatment's trials of a run gave.
type sample struct {
	trials, failed, excluded, notEnded, extra int

	failures   []Failure
	valid      []observation // in the order of the sheet
	deliveries []delivered   // of the valid and the failed, in that order; none where there is no horizon
	horizon    float64       // seconds
}

func takeSample(r *Run, trials []*Trial) sample {
	s := sample{trials: len(trials)}
	count := map[Failure]int{}
	for _, t := range trials {
		s.extra += max(0, len(t.Attempts)-1)
		for i := range t.Attempts {
			if a := &t.Attempts[i]; a.Verdict != "" && !a.Valid() && !r.Waits(a) {
				count[Failure{Verdict: a.Verdict, Reason: a.Why()}]++
			}
		}
		a, ended := t.last(), true
		switch {
		case a != nil && a.Valid():
			s.valid = append(s.valid, observe(t, a, r.least(t, a)))
		case t.Verdict == "" || a != nil && r.Waits(a):
			s.notEnded, ended = s.notEnded+1, false
		case t.excluded():
			s.excluded, ended = s.excluded+1, false
		default:
			s.failed++
		}
		if h := r.horizon(t); ended && h > 0 {
			s.horizon, s.deliveries = h.Seconds(), append(s.deliveries, deliver(t, h))
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

// values takes one metric of every valid trial and leaves out what has none.
func (s *sample) values(of func(*observation) float64) []float64 {
	xs := make([]float64, 0, len(s.valid))
	for i := range s.valid {
		if x := of(&s.valid[i]); !math.IsNaN(x) {
			xs = append(xs, x)
		}
	}
	return xs
}

// by is one metric of every valid trial by its iteration.
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
func idealOf(o *observation) float64   { return o.ideal }
func codedOf(o *observation) float64   { return o.coded }

func idealTransferOf(o *observation) float64 { return o.idealTransfer }
func codedTransferOf(o *observation) float64 { return o.codedTransfer }

// shareOf is the share of a bound.
func shareOf(bound func(*observation) float64) func(*observation) float64 {
	return func(o *observation) float64 { return stats.ShareOfBound(bound(o), o.whole()) }
}

// boundRateOf is the throughput that a bound would have by a clock, KB/s.
func boundRateOf(bound func(*observation) float64) func(*observation) float64 {
	return func(o *observation) float64 { return float64(o.sizeBytes) / unit.KB / bound(o) }
}

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

// summarised is a run with its table and, for each row of it, what the row was
// made from.
type summarised struct {
	run     *Run
	axes    []plan.Condition // of the run
	table   RunTable
	samples []sample
}

// row is the place of a treatment in the table; -1 where it has none.
func (s *summarised) row(treatment string) int {
	return slices.IndexFunc(s.table.Rows, func(r Row) bool { return r.Treatment == treatment })
}

// transferOf is the time of a bound by the transfer's clock, in seconds. A bound's clock
// starts with the channel's, before the connect: what a transfer's connect took is not
// in the transfer's time, and so not in this one. It is not less than the emulated radios
// need at their best, which is known for the runs of a sheet: a handshake may have lasted
// longer than all that the bound needs. Nor is a limit less than another one below it.
func transferOf(bound, connect, least float64) float64 {
	if x := max(bound-connect, least); x > 0 { // NaN stays NaN
		return x
	}
	return math.NaN()
}

// meanOfAll is a metric's mean over the valid trials, NaN unless all of them have it: a
// mean over some of the trials is not comparable with one over all.
func (s *sample) meanOfAll(of func(*observation) float64) float64 {
	xs := s.values(of)
	if len(xs) != len(s.valid) {
		return math.NaN()
	}
	return stats.Mean(xs)
}
