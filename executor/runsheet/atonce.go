package runsheet

import (
	"slices"
	"time"
)

// MostAtOnce returns how many flows and probes of one trial are under way at the same
// time, at most: each has a driver process of its own. One without a duration is taken to
// last as long as its trial.
func (s *Sheet) MostAtOnce() int {
	most := 0
	for i := range s.Trials {
		most = max(most, atOnce(s.Trials[i].Carried()))
	}
	return most
}

func atOnce(flows []Flow) int {
	type change struct {
		at time.Duration
		by int
	}
	var changes []change
	for _, f := range flows {
		changes = append(changes, change{f.Start, 1})
		if f.Duration > 0 {
			changes = append(changes, change{f.Start + f.Duration, -1})
		}
	}
	// One that ends when another begins is still there: what it sent is acknowledged first.
	slices.SortFunc(changes, func(a, b change) int {
		if a.at != b.at {
			return int(min(1, max(-1, a.at-b.at)))
		}
		return b.by - a.by
	})
	now, most := 0, 0
	for _, c := range changes {
		now += c.by
		most = max(most, now)
	}
	return most
}
