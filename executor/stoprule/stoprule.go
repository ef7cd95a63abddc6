// Package stoprule judges by the rule of a run sheet to stop by: which treatments are beaten
// after an iteration, by the times to delivery of the trials so far. The executor, which stops by
// it, and results and audits, which say and check what it found, judge by the same code.
//
// Comes in: a sheet and a journal's trials, or times by treatment and iteration. Goes out: the
// [journal.Look] of an iteration. It is pure.
package stoprule

import (
	"cmp"
	"slices"
	"time"

	"linktrial/executor/journal"
	"linktrial/executor/replay"
	"linktrial/executor/runsheet"
	"linktrial/internal/stats"
)

// Times are times to delivery, in seconds, by treatment and iteration: that of a trial whose
// payload was there, and the horizon of one that the protocol failed. What tells nothing of the
// protocol has none.
type Times map[string]map[int]float64

// Set sets the time of a trial.
func (t Times) Set(treatment string, iteration int, seconds float64) {
	if t[treatment] == nil {
		t[treatment] = map[int]float64{}
	}
	t[treatment][iteration] = seconds
}

// TimesOf is the times of the trials that have ended, up to an iteration. An attempt counts as the
// leading node saw it end: what the other nodes' journals tell later is not known yet.
func TimesOf(s *runsheet.Sheet, state *replay.State, until int) Times {
	times := Times{}
	horizon := s.Limits.DeliveryHorizon()
	for i := range s.Trials {
		t := &s.Trials[i]
		progress := state.Trial(i)
		if t.Iteration > until || !progress.Ended {
			continue
		}
		switch v, spent, took := progress.Outcome(); v {
		case journal.Succeeded:
			times.Set(t.Treatment, t.Iteration, min(horizon, spent+span(t.Flows, took)).Seconds())
		case journal.Failed, journal.TimedOut:
			times.Set(t.Treatment, t.Iteration, horizon.Seconds())
		}
	}
	return times
}

// span is from the first start of a flow to the last end of one.
func span(flows []runsheet.Flow, took []time.Duration) time.Duration {
	var first, last time.Duration
	for i := range min(len(flows), len(took)) {
		if end := flows[i].Start + took[i]; i == 0 || end > last {
			last = end
		}
		if i == 0 || flows[i].Start < first {
			first = flows[i].Start
		}
	}
	return last - first
}

// Judge is what the rule finds after an iteration. Treatments that earlier looks found beaten
// stay so, in their order. A rule that cannot be followed has a fault, and stops nothing.
func Judge(s *runsheet.Sheet, times Times, iteration int, beaten []string) journal.Look {
	look := journal.Look{Iteration: iteration, Beaten: slices.Clone(beaten)}
	names := s.Compared()
	comparisons := Comparisons(names, times)
	found, worse, err := s.Stop.Sequential().Family(comparisons, false, iteration)
	if err != nil {
		look.Fault = err.Error()
		return look
	}
	for i, f := range found {
		c := &comparisons[i]
		look.Comparisons = append(look.Comparisons, journal.LookComparison{Reference: c.Reference, Value: c.Value, Iteration: f.Iteration,
			Pairs: f.Pairs, RankSum: f.RankSum, Boundary: f.Boundary, Level: f.Level, Decided: f.Stops})
	}
	for _, name := range worse {
		if !slices.Contains(look.Beaten, name) {
			look.Beaten = append(look.Beaten, name)
		}
	}
	look.Stop = len(look.Beaten) >= len(names)-1
	return look
}

// Comparisons is every two treatments, over the iterations in which both have a time.
func Comparisons(names []string, times Times) (out []stats.FamilyComparison) {
	for i, reference := range names {
		for _, value := range names[i+1:] {
			c := stats.FamilyComparison{Reference: reference, Value: value}
			for iteration, seconds := range times[reference] {
				if other, both := times[value][iteration]; both {
					c.Blocks = append(c.Blocks, stats.Block{Iteration: iteration, Pair: stats.Pair{Reference: seconds, Value: other}})
				}
			}
			slices.SortFunc(c.Blocks, func(a, b stats.Block) int { return cmp.Compare(a.Iteration, b.Iteration) })
			out = append(out, c)
		}
	}
	return out
}

// NotNeeded reports whether a trial is not run, by the looks so far.
func NotNeeded(t *runsheet.Trial, looks []journal.Look) bool {
	return slices.ContainsFunc(looks, func(l journal.Look) bool {
		return t.Iteration > l.Iteration && (l.Stop || slices.Contains(l.Beaten, t.Treatment))
	})
}
