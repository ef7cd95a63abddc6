package telemetry

import (
	"context"
	"fmt"
	"math"
	"sort"
	"time"

	"linktrial/orchestrator/report"
	"linktrial/orchestrator/store"
	"linktrial/orchestrator/telemetry/telemetrydb"
)

// Fill adds to each attempt of a run that has ended the readings of radios during
// it.
func Fill(ctx context.Context, conn store.Conn, run *report.Run) error {
	cs, err := readClocks(ctx, conn, run.ID)
	if err != nil || cs == nil {
		return err
	}
	first, last := time.Time{}, time.Time{}
	attempts(run, func(_ *report.Trial, a *report.Attempt) {
		from, to := cs.span(a)
		if first.IsZero() || from.Before(first) {
			first = from
		}
		last = later(last, to)
	})
	if first.IsZero() {
		return nil
	}
	all, err := cs.series(ctx, conn, first, last)
	if err != nil {
		return err
	}
	attempts(run, func(_ *report.Trial, a *report.Attempt) {
		a.Telemetry = nil
		from, to := cs.span(a)
		for i := range all {
			if t := all[i].during(from, to); t != nil {
				a.Telemetry = append(a.Telemetry, *t)
			}
		}
	})
	return nil
}

// attempts calls each with the attempts that have ended, in the order of trials.
func attempts(run *report.Run, each func(*report.Trial, *report.Attempt)) {
	for i := range run.Trials {
		t := &run.Trials[i]
		for k := range t.Attempts {
			if a := &t.Attempts[k]; !a.Started.IsZero() && a.Duration > 0 {
				each(t, a)
			}
		}
	}
}

// span returns an attempt's start and end by the orchestrator's clock.
func (cs *clocks) span(a *report.Attempt) (from, to time.Time) {
	return cs.ofLeader(a.Started), cs.ofLeader(a.Started.Add(a.Duration))
}

// during summarises the metric between two times; nil where there is no reading.
func (f *series) during(from, to time.Time) *report.Telemetry {
	// The readings within are those from first on, before next.
	first := sort.Search(len(f.at), func(i int) bool { return !f.at[i].Before(from) })
	next := first + sort.Search(len(f.at)-first, func(i int) bool { return f.at[first+i].After(to) })
	out := &report.Telemetry{Node: f.node, Role: f.role, Source: f.source, Kind: f.kind, Metric: f.name, Unit: f.unit, Readings: next - first}
	lo, hi := f.nearest(first, next, from, to)
	var known bool
	if f.counter {
		if out.Unit != "" {
			out.Unit += "/s"
		}
		known = f.summariseRate(out, lo, hi, from, to)
	} else {
		if out.Readings > 0 {
			lo, hi = first, next
		}
		known = f.summariseValues(out, lo, hi)
	}
	if !known {
		return nil
	}
	for _, x := range []*float64{&out.Minimum, &out.Mean, &out.Maximum} {
		r := report.Rounded(*x)
		if r == nil {
			return nil // the source gave a value beyond the range of numbers
		}
		*x = *r
	}
	return out
}

// summariseValues summarises the readings from lo on and before hi.
func (f *series) summariseValues(out *report.Telemetry, lo, hi int) bool {
	if lo == hi {
		return false
	}
	sum := 0.0
	out.Minimum, out.Maximum = math.Inf(1), math.Inf(-1)
	for _, v := range f.value[lo:hi] {
		out.Minimum, out.Maximum = min(out.Minimum, v), max(out.Maximum, v)
		sum += v
	}
	out.Mean = sum / float64(hi-lo)
	return true
}

// summariseRate summarises the rate a second of a counter from one reading to the
// next, weighted by how much of that time lies between from and to. Where the
// later reading is smaller, the counter was reset, and the rate is not known; neither is it
// where the source failed in between.
func (f *series) summariseRate(out *report.Telemetry, lo, hi int, from, to time.Time) bool {
	sum, covered := 0.0, 0.0
	out.Minimum, out.Maximum = math.Inf(1), math.Inf(-1)
	for i := lo; i+1 < hi; i++ {
		whole := f.at[i+1].Sub(f.at[i]).Seconds()
		share := earlier(f.at[i+1], to).Sub(later(f.at[i], from)).Seconds()
		if whole <= 0 || share <= 0 || f.value[i+1] < f.value[i] || f.brokenIn(f.at[i], f.at[i+1]) {
			continue
		}
		rate := (f.value[i+1] - f.value[i]) / whole
		out.Minimum, out.Maximum = min(out.Minimum, rate), max(out.Maximum, rate)
		sum, covered = sum+rate*share, covered+share
	}
	out.Mean = sum / covered
	return covered > 0
}

// Reading is one reading of a source, or why there is none, by the orchestrator's
// clock.
type Reading struct {
	Node, Role, Source, Kind string
	Metric, Unit             string
	Value                    *float64 // nil: Error says why
	Counter                  bool
	Error                    string
	At                       time.Time
	// The attempt within which it lies; nil: none.
	Trial   *report.Trial
	Attempt *report.Attempt
	Since   time.Duration // after the attempt's start
}

// Readings calls each with all readings of a run, node by node in order of time.
func Readings(ctx context.Context, conn store.Conn, run *report.Run, each func(*Reading) error) error {
	cs, err := readClocks(ctx, conn, run.ID)
	if err != nil || cs == nil {
		return err
	}
	type span struct {
		from, to time.Time
		trial    *report.Trial
		attempt  *report.Attempt
	}
	var spans []span
	attempts(run, func(t *report.Trial, a *report.Attempt) {
		from, to := cs.span(a)
		spans = append(spans, span{from, to, t, a})
	})
	sort.SliceStable(spans, func(i, j int) bool { return spans[i].from.Before(spans[j].from) })
	nodes, err := conn.RunNodes(ctx, run.ID)
	if err != nil {
		return fmt.Errorf("nodes of run %s: %w", run.ID, err)
	}
	for _, n := range nodes {
		rows, err := telemetrydb.New(conn).TelemetryOfNode(ctx, telemetrydb.TelemetryOfNodeParams{RunID: run.ID, Node: n.Node})
		if err != nil {
			return fmt.Errorf("telemetry of %s in run %s: %w", n.Node, run.ID, err)
		}
		for i := range rows {
			r := &rows[i]
			x := &Reading{Node: r.Node, Role: n.Role, Source: r.Source, Kind: r.Kind, Metric: r.Name, Unit: r.Unit, Value: r.Value, Counter: r.Counter,
				Error: r.Error, At: cs.of[r.Node].toOrchestrator(r.At)}
			k := sort.Search(len(spans), func(i int) bool { return spans[i].from.After(x.At) }) - 1
			if k >= 0 && !x.At.After(spans[k].to) {
				x.Trial, x.Attempt, x.Since = spans[k].trial, spans[k].attempt, x.At.Sub(spans[k].from)
			}
			if err := each(x); err != nil {
				return err
			}
		}
	}
	return nil
}
