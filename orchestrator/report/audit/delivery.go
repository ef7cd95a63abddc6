package audit

import (
	"cmp"
	"io"
	"math"
	"slices"
	"time"

	"linktrial/executor/journal"
)

// horizon is until when results wait for a trial's payload (docs/exports.md); 0: times bound
// its flows, so that nobody does.
func (a *auditor) horizon(trial int) time.Duration {
	for _, f := range a.sheet.Trials[trial].Flows {
		if f.Duration > 0 || f.Session > 0 {
			return 0
		}
	}
	return cmp.Or(a.sheet.Limits.Horizon, a.sheet.Limits.Transfer)
}

// spentBy is how long each valid trial was waited for: what its attempt took, and those
// before it that the protocol failed.
func spentBy(values []value) map[int]time.Duration {
	out := map[int]time.Duration{}
	failed := []string{string(journal.Failed), string(journal.TimedOut)}
	for i := range values {
		switch f := &values[i]; {
		case f.counted:
			out[f.trial] += f.connect + f.elapsed
		case slices.Contains(failed, f.verdict):
			out[f.trial] += f.duration
		}
	}
	return out
}

// wait counts a trial that is valid or failed.
func (s *summary) wait(horizon, took time.Duration, valid bool) {
	if horizon <= 0 {
		return
	}
	s.outcomes++
	s.horizon = horizon.Seconds()
	if valid && took <= horizon {
		s.delivered = append(s.delivered, took.Seconds())
		s.waited += took.Seconds()
		return
	}
	s.waited += s.horizon
}

// deliveryValue is what files have of the times to delivery, by the names that they give it.
func (s *summary) deliveryValue(name string) float64 {
	if s.outcomes == 0 {
		return math.NaN()
	}
	return map[string]float64{"delivery_horizon_s": s.horizon, "delivered_share": float64(len(s.delivered)) / float64(s.outcomes),
		"delivery_mean_s": s.waited / float64(s.outcomes)}[name]
}

var deliveryNames = []string{"delivery_horizon_s", "delivered_share", "delivery_mean_s"}

// delivery checks the times to delivery that a file has of a treatment. Files of earlier
// versions have none.
func (x *exported) delivery(name string, values map[string]float64) {
	s := x.by[name]
	if s == nil {
		s = &summary{} // missing: it has no trials
	}
	for _, n := range deliveryNames {
		got, has := values[n]
		if want := s.deliveryValue(n); has && !(math.IsNaN(got) && math.IsNaN(want)) && !near(got, want) {
			x.find("treatment %s: %s is %.9g, by the journals %.9g", name, n, got, want)
		}
	}
}

// deliveries checks delivery.csv: a row for each time by which more trials were delivered.
func (x *exported) deliveries(r io.Reader) error {
	seen := map[string]int{} // trials delivered, by the rows so far
	err := x.each(r, func(r *row) {
		x.c.Objects++
		name := r.text("treatment")
		s := x.by[name]
		n := r.whole("delivered")
		switch {
		case s == nil:
			x.find("treatment %s has a row, and no trials", name)
		case r.text("delivery_s") == "" && n < 0:
			seen[name] = 0
		case n <= seen[name] || n > len(s.delivered):
			x.find("treatment %s: %d trials were delivered by %s s, by the journals %d in all", name, n, r.text("delivery_s"), len(s.delivered))
		default:
			if got, want := r.real("delivery_s"), s.delivered[n-1]; !near(got, want) {
				x.find("treatment %s: trial %d of those that were delivered was there after %.9g s, by the journals after %.9g s", name, n, got, want)
			}
			seen[name] = n
		}
	})
	for _, name := range x.names {
		s := x.by[name]
		if n, has := seen[name]; err == nil && s.outcomes > 0 && (!has || n != len(s.delivered)) {
			x.find("treatment %s: %d trials were delivered, by the journals %d", name, n, len(s.delivered))
		}
	}
	return err
}
