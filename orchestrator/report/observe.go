package report

import (
	"cmp"
	"math"
	"slices"
	"time"

	"linktrial/executor/figures"
	"linktrial/executor/journal"
	"linktrial/internal/unit"
	"linktrial/orchestrator/stats"
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

// observe takes the figures of a valid attempt; least is the least time that the
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

// shareOf is what a flow adds to the throughput of the attempt, B/s.
func (a *Attempt) shareOf(flow int) float64 {
	f := &a.Flows[flow]
	if a.Window != nil && flow < len(a.Window.Bytes) {
		return float64(a.Window.Bytes[flow]) / a.Window.Length.Seconds()
	}
	if window := a.window(); window > 0 {
		return f.inTime() / window.Seconds()
	}
	return float64(f.SizeBytes) / a.Elapsed.Seconds()
}

// rateOf is a flow's own throughput, over its own time, B/s.
func (a *Attempt) rateOf(flow int) float64 {
	f := &a.Flows[flow]
	switch {
	case a.Window != nil && flow < len(a.Window.Bytes):
		return float64(a.Window.Bytes[flow]) / f.Bound.Seconds()
	case f.Elapsed > 0:
		return float64(f.SizeBytes) / f.Elapsed.Seconds()
	}
	return 0
}

// least is the least time that the emulated radios need for the one flow of an
// attempt; 0 where they are not known.
func (r *Run) least(t *Trial, a *Attempt) time.Duration {
	if r.Sheet == nil || r.Sheet.Network == nil || a.Ideal <= 0 || t.Index < 0 || t.Index >= len(r.Sheet.Trials) || len(r.Sheet.Trials[t.Index].Flows) != 1 {
		return 0
	}
	f := &r.Sheet.Trials[t.Index].Flows[0]
	return figures.LeastOfBoth(r.Sheet.Network, &figures.Flow{From: f.From, To: f.To, SizeBytes: a.SizeBytes})
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

	failures []Failure
	valid    []observation // in the order of the sheet
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
		a := t.Counted()
		switch {
		case a != nil:
			s.valid = append(s.valid, observe(t, a, r.least(t, a)))
		case t.Verdict == "" || len(t.Attempts) > 0 && r.Waits(&t.Attempts[len(t.Attempts)-1]):
			s.notEnded++
		case t.excluded():
			s.excluded++
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

// Counted is the attempt whose figure counts for the trial, or nil.
func (t *Trial) Counted() *Attempt {
	if n := len(t.Attempts); n > 0 && t.Attempts[n-1].Valid() {
		return &t.Attempts[n-1]
	}
	return nil
}

// excluded reports whether an ended trial tells nothing of its protocol: what its last
// attempt came to does not count, because of a fault of the apparatus, a rule of validity, a
// mark or a figure that cannot be true, or people ended it.
func (t *Trial) excluded() bool {
	v := t.Verdict
	if n := len(t.Attempts); n > 0 {
		v = t.Attempts[n-1].Verdict
	}
	return v == journal.Invalid || v == journal.Aborted
}

// Valid reports whether the attempt succeeded, the server received every byte as it
// was sent, and there is a figure.
func (a *Attempt) Valid() bool {
	return a.Verdict == journal.Succeeded && a.Verified && a.Elapsed > 0 && (a.Window == nil || a.Window.Unknown == "")
}

// Waits reports whether the server's report on a transfer may still arrive.
func (r *Run) Waits(a *Attempt) bool {
	return r.underWay() && a.Verdict == journal.Succeeded && !a.Verified
}

func (r *Run) underWay() bool {
	return r.State != "completed" && r.State != "aborted" && r.State != "stopped"
}

// Why is the attempt's reason, or what is wrong with a success.
func (a *Attempt) Why() string {
	switch {
	case a.Verdict != journal.Succeeded || a.Reason != "":
		return a.Reason
	case !a.Verified:
		return "unverified"
	default:
		return "no-elapsed-time"
	}
}
