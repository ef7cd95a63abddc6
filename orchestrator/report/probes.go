package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
	"linktrial/internal/stats"
	"linktrial/protocols/contract"
)

// probeSample is what a row of probes is made of.
type probeSample struct {
	row                      ProbeRow
	mean, p50, p95, p99, jit []float64
	loss                     []float64 // shares
	least, longest, jitterTo float64
	uncertain                float64
	failures                 map[Failure]int
	all                      []weighted
	partial                  bool // a measured trial has no percentiles
	rating, mos, playout     []float64
	capacity                 capacitySample
	messages                 messagesSample
}

// weighted is a delay in milliseconds, of so many packets.
type weighted struct{ ms, packets float64 }

// probeRows are the rows of a run.
func probeRows(r *Run) (out []ProbeRow) {
	for _, s := range probeSamples(r) {
		out = append(out, s.finish(r.ProbeClock))
	}
	return out
}

// probeSamples are those of a run's rows: of each probe first that without transfers, then
// one for each treatment beside which it ran, in the order of the sheet.
func probeSamples(r *Run) (out []*probeSample) {
	if r.Sheet == nil {
		return nil
	}
	type key struct {
		probe  string
		from   radio.Role
		beside string
	}
	var order []key
	samples := map[key]*probeSample{}
	for i := range r.Sheet.Trials {
		spec := &r.Sheet.Trials[i]
		for k := range spec.Probes {
			id := key{spec.Probes[k].Treatment, spec.Probes[k].From, spec.Beside()}
			s := samples[id]
			if s == nil {
				s = newProbeSample(r, &spec.Probes[k], id.beside)
				samples[id], order = s, append(order, id)
			}
			s.row.Trials++
			if t := r.trial(i); t != nil {
				s.add(r, t, k)
			}
		}
	}
	at := map[string]int{}
	for i, t := range r.Sheet.Treatments {
		at[t.Name] = i + 1
	}
	for i, m := range r.Sheet.Mixes {
		at[m.Name] = len(r.Sheet.Treatments) + i + 1
	}
	slices.SortStableFunc(order, func(a, b key) int {
		return cmp.Or(cmp.Compare(at[a.probe], at[b.probe]), cmp.Compare(runsheet.Place(a.from), runsheet.Place(b.from)), cmp.Compare(at[a.beside], at[b.beside]))
	})
	for _, id := range order {
		out = append(out, samples[id])
	}
	return out
}

func newProbeSample(r *Run, f *runsheet.Flow, beside string) *probeSample {
	s := &probeSample{row: ProbeRow{Probe: f.Treatment, From: f.From, To: f.To, Label: r.probeLabel(f), Beside: beside}, least: math.Inf(1), longest: math.Inf(-1), jitterTo: math.Inf(-1), failures: map[Failure]int{}}
	if beside != "" {
		s.row.BesideLabel = r.Sheet.Label(beside)
	}
	if t := r.Sheet.Treatment(f.Treatment); t != nil {
		s.row.DSCP = t.DSCP
	}
	return s
}

// probeLabel is a probe's name for people.
func (r *Run) probeLabel(f *runsheet.Flow) string {
	label := r.Sheet.Label(f.Treatment)
	if slices.ContainsFunc(r.Sheet.Trials, func(t runsheet.Trial) bool {
		return slices.ContainsFunc(t.Probes, func(p runsheet.Flow) bool { return p.FromServer() })
	}) {
		label += fmt.Sprintf(", %s → %s", f.From, f.To)
	}
	return label
}

// add takes the last attempt of a trial, whose kth probe it is.
func (s *probeSample) add(r *Run, t *Trial, k int) {
	a := t.last()
	if a == nil || k >= len(a.Probes) || a.Verdict == "" {
		return
	}
	p := &a.Probes[k]
	if !p.Counts() {
		s.failures[Failure{Verdict: p.Verdict, Reason: p.Reason}]++
		return
	}
	if a.Unloads(s.row.Beside) {
		s.row.Unloaded++
		return
	}
	f := p.Metrics
	s.row.Measured++
	if s.row.Beside != "" && !a.Valid() && !r.Waits(a) {
		s.row.FailedTransfers++
	}
	s.row.Sent, s.row.Received, s.row.Lost = s.row.Sent+f.Sent, s.row.Received+f.Received, s.row.Lost+f.Lost
	s.row.Unsent, s.row.Offered = s.row.Unsent+f.Unsent, s.row.Offered+f.Sent+f.Unsent
	s.row.ProcessTimes = s.row.ProcessTimes || f.ProcessTimes
	s.row.LossBursts, s.row.LongestLossBurst = s.row.LossBursts+f.LossBursts, max(s.row.LongestLossBurst, f.LongestLossBurst)
	s.row.Reordered, s.row.Duplicated = s.row.Reordered+f.Reordered, s.row.Duplicated+f.Duplicated
	if f.Sent > 0 {
		s.loss = append(s.loss, float64(f.Lost)/float64(f.Sent))
	}
	s.messages.add(f, r.ProbeClock.Of(s.row.From))
	if f.Delay == nil {
		return
	}
	d := r.ProbeClock.Of(s.row.From).Correct(f.Delay)
	s.mean, s.p50, s.p95, s.p99 = append(s.mean, d.Mean), append(s.p50, d.P50), append(s.p95, d.P95), append(s.p99, d.P99)
	s.jit = append(s.jit, milliseconds(f.JitterMeanNS))
	if v := r.Voice(p); v != nil {
		s.rating, s.mos, s.playout = append(s.rating, v.R), append(s.mos, v.MOS), append(s.playout, v.PlayoutMS)
	}
	if f.Capacity != nil {
		s.capacity.add(f.Capacity, r.ProbeClock.Of(s.row.From), f.Delay.MinNS)
	}
	s.least, s.longest = min(s.least, d.Min), max(s.longest, d.Max)
	s.jitterTo = max(s.jitterTo, milliseconds(f.JitterMaxNS))
	s.uncertain = max(s.uncertain, milliseconds(f.ClockStepNS))
	s.partial = s.partial || d.Percentiles == nil
	for i := 1; i < len(d.Percentiles); i++ {
		s.all = append(s.all, weighted{d.Percentiles[i], float64(f.Received) / float64(len(d.Percentiles)-1)})
	}
}

func (s *probeSample) finish(c ProbeClock) ProbeRow {
	row := s.row
	if row.Sent > 0 {
		row.LossShare = Rounded(float64(row.Lost) / float64(row.Sent))
	}
	row.DelayMinMS, row.DelayMaxMS = Rounded(s.least), Rounded(s.longest)
	row.DelayMeanMS, row.DelayMeanCI = Rounded(stats.Mean(s.mean)), meanInterval(s.mean)
	row.DelayP50MS, row.DelayP95MS, row.DelayP99MS = Rounded(stats.Mean(s.p50)), Rounded(stats.Mean(s.p95)), Rounded(stats.Mean(s.p99))
	row.JitterMS, row.JitterMaxMS = Rounded(stats.Mean(s.jit)), Rounded(s.jitterTo)
	if c.Unknown == "" && len(s.mean) > 0 {
		row.UncertaintyMS = Rounded(milliseconds(c.Uncertainty.Nanoseconds()) + s.uncertain)
	}
	row.RFactor, row.MOS, row.PlayoutMS, row.Capacity = Rounded(stats.Mean(s.rating)), Rounded(stats.Mean(s.mos)), Rounded(stats.Mean(s.playout)), s.capacity.finish()
	row.Messages = s.messages.finish()
	if !s.partial {
		row.PercentilesMS = pooled(s.all, s.least)
	}
	for f, n := range s.failures {
		f.Attempts = n
		row.Failures = append(row.Failures, f)
	}
	slices.SortFunc(row.Failures, func(a, b Failure) int {
		return cmp.Or(cmp.Compare(a.Verdict, b.Verdict), cmp.Compare(a.Reason, b.Reason))
	})
	return row
}

// pooled are the percentiles of several probes' delays together; nil of none.
func pooled(all []weighted, least float64) []float64 {
	if len(all) == 0 {
		return nil
	}
	slices.SortFunc(all, func(a, b weighted) int { return cmp.Compare(a.ms, b.ms) })
	total := 0.0
	for _, w := range all {
		total += w.packets
	}
	out := []float64{*Rounded(least)}
	sum, i := all[0].packets, 0
	for p := 1; p < contract.DelayPercentiles; p++ {
		// A sum of shares is not exact; a packet more or less is not meant.
		for sum < total*float64(p)/(contract.DelayPercentiles-1)-total*1e-9 && i < len(all)-1 {
			i++
			sum += all[i].packets
		}
		out = append(out, *Rounded(all[i].ms))
	}
	return out
}

// trial is the one with this number in the sheet; nil: the run does not have it, as one
// that was read from an export without some treatments.
func (r *Run) trial(index int) *Trial {
	if index < len(r.Trials) && r.Trials[index].Index == index {
		return &r.Trials[index]
	}
	if i := slices.IndexFunc(r.Trials, func(t Trial) bool { return t.Index == index }); i >= 0 {
		return &r.Trials[i]
	}
	return nil
}

// AttemptProbes are the rows of one attempt's probes.
func (r *Run) AttemptProbes(trial, attempt int) *RunTable {
	out := &RunTable{ProbeClock: &r.ProbeClock}
	if r.Sheet == nil || trial >= len(r.Sheet.Trials) || trial >= len(r.Trials) {
		return out
	}
	spec, t := &r.Sheet.Trials[trial], r.Trials[trial]
	i := slices.IndexFunc(t.Attempts, func(a Attempt) bool { return a.Attempt == attempt })
	if i < 0 {
		return out
	}
	t.Attempts = t.Attempts[i : i+1]
	for k := range spec.Probes {
		s := newProbeSample(r, &spec.Probes[k], spec.Beside())
		s.row.Trials++
		s.add(r, &t, k)
		out.Probes = append(out.Probes, s.finish(r.ProbeClock))
	}
	return out
}
