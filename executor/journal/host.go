package journal

import "time"

// HostLoad is what a node's processors kept from the programs of an attempt. What the
// kernel does not say is nil.
type HostLoad struct {
	// Missed is the time by which a thread with the drivers' priority was woken later than
	// it would matter to a value, all wake-ups together, and Longest the latest one.
	Missed  time.Duration `json:"missed_ns"`
	Longest time.Duration `json:"longest_ns"`
	// Pressure is the time in which some program of the node was ready and did not run
	// (pressure stall information).
	Pressure *time.Duration `json:"pressure_ns,omitempty"`
	// Steal is the processors' time that a hypervisor gave to others.
	Steal *time.Duration `json:"steal_ns,omitempty"`
	// Throttled is the time in which a bound on the agent's group held its programs back.
	Throttled *time.Duration `json:"throttled_ns,omitempty"`
}

// HostWatched is what a node that does not lead measured in the time of a [Watched]
// record, in which it does not know of attempts.
type HostWatched struct {
	HostLoad
	// Late is when Missed was missed, in order of time: a step for each tenth of a second
	// with some.
	Late []LateAt `json:"late,omitempty"`
}

// LateAt is the missed time of a step of [HostLateStep].
type LateAt struct {
	After  time.Duration `json:"after_ns"` // of its begin, after the record's
	Missed time.Duration `json:"missed_ns"`
}

// HostLateStep is the time that each of [HostWatched.Late] is about.
const HostLateStep = 100 * time.Millisecond

// During is what was missed from one moment after the record's begin to another one.
func (h *HostWatched) During(from, to time.Duration) (sum time.Duration) {
	for _, l := range h.Late {
		if at := l.After + HostLateStep/2; at >= from && at <= to {
			sum += l.Missed
		}
	}
	return sum
}

// StarvedShare is the share of an attempt's time from which on results say that its node
// was starved, where a plan has no rule: a transfer whose programs miss that much may be
// slower by as much.
const StarvedShare = 0.02

// Share is the missed share of a time, 0 to 1.
func (h *HostLoad) Share(of time.Duration) float64 {
	if of <= 0 {
		return 0
	}
	return min(1, h.Missed.Seconds()/of.Seconds())
}
