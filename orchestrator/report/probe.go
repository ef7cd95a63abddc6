package report

import (
	"math"
	"time"

	"linktrial/executor/journal"
	"linktrial/internal/radio"
	"linktrial/protocols/contract"
)

// Probe is one probe of an attempt.
type Probe struct {
	Treatment string          `json:"treatment"`
	From      radio.Role      `json:"from"`
	To        radio.Role      `json:"to"`
	Verdict   journal.Verdict `json:"verdict,omitempty"`
	Reason    string          `json:"reason,omitempty"`
	Message   string          `json:"message,omitempty"`
	Connect   time.Duration   `json:"connect_ns"`
	Elapsed   time.Duration   `json:"elapsed_ns"`
	// Metrics are as measured: delays are between the clocks as they were. Nil where
	// there are none.
	Metrics *contract.ProbeMetrics `json:"figures,omitempty"`
}

// Counts reports whether the probe's values count: whatever became of the
// transfers beside it.
func (p *Probe) Counts() bool { return p.Verdict == journal.Succeeded && p.Metrics != nil }

// ProbeClock is how the clocks of the two ends of a run's probes stand to each other.
type ProbeClock struct {
	// Shared: both ends are on one machine and have one clock.
	Shared bool `json:"shared"`
	// Offset is to be added to every delay from client to server, and taken from those
	// back; Uncertainty bounds its error.
	Offset      time.Duration `json:"offset_ns"`
	Uncertainty time.Duration `json:"uncertainty_ns"`
	// Unknown is why nothing is known of it; delays are then only those above the
	// shortest one of their probe.
	Unknown string `json:"unknown,omitempty"`
}

// OneClock is that of nodes of one machine.
var OneClock = ProbeClock{Shared: true}

// CompareClocks makes the clocks of two nodes one, each of which was compared with
// the orchestrator's before and after the run.
func CompareClocks(client, server []journal.ClockOffset) ProbeClock {
	c, cErr, why := clockOf(client)
	if why != "" {
		return ProbeClock{Unknown: "the client's clock was not compared: " + why}
	}
	s, sErr, why := clockOf(server)
	if why != "" {
		return ProbeClock{Unknown: "the server's clock was not compared: " + why}
	}
	// A delay is the server's time of arrival less the client's of sending; on the
	// orchestrator's clock each has its node's offset added.
	return ProbeClock{Offset: s - c, Uncertainty: cErr + sErr}
}

// Of is the clock of the probes that come from a role: the other way round, the
// offset has the other sign.
func (c ProbeClock) Of(from radio.Role) ProbeClock {
	if from == radio.RoleServer {
		c.Offset = -c.Offset
	}
	return c
}

// clockOf is a node's offset halfway between its comparisons, with what bounds its
// error: that of the comparisons, and what the clock moved between them.
func clockOf(all []journal.ClockOffset) (offset, bound time.Duration, why string) {
	low, high := time.Duration(math.MaxInt64), time.Duration(math.MinInt64)
	why = "no comparison has arrived"
	for _, o := range all {
		if o.Unknown != "" {
			why = o.Unknown
			continue
		}
		low, high = min(low, o.Offset-o.Error), max(high, o.Offset+o.Error)
	}
	if low > high {
		return 0, 0, why
	}
	return (low + high) / 2, (high - low + 1) / 2, ""
}

// DelaysMS are one-way delays in milliseconds.
type DelaysMS struct {
	Min, Mean, P50, P95, P99, Max float64
	Percentiles                   []float64 // from 0 to 100; nil: the driver reports none
}

// Correct is delays by one clock: with the offset added, or, where it is not known,
// above the shortest one.
func (c ProbeClock) Correct(d *contract.Delays) DelaysMS {
	add := c.Offset.Nanoseconds()
	if c.Unknown != "" {
		add = -d.MinNS
	}
	of := func(ns int64) float64 { return milliseconds(ns + add) }
	out := DelaysMS{of(d.MinNS), of(d.MeanNS), of(d.P50NS), of(d.P95NS), of(d.P99NS), of(d.MaxNS), nil}
	for _, ns := range d.PercentilesNS {
		out.Percentiles = append(out.Percentiles, of(ns))
	}
	return out
}

// CorrectPart is the delays of a part of a probe's packets, or the times of its messages, by
// one clock; where that is not known, above the least delay of the whole probe.
func (c ProbeClock) CorrectPart(d *contract.Delays, least int64) DelaysMS {
	if c.Unknown != "" {
		c = ProbeClock{Offset: time.Duration(-least)}
	}
	return c.Correct(d)
}

func milliseconds(ns int64) float64 { return float64(ns) / 1e6 }
