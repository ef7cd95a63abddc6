package contract

import (
	"errors"
	"fmt"
	"slices"
)

// A probe is a flow of packets at a stated rate or pattern, each with a sequence
// number and the time at which it was sent. The client sends for
// [Transfer.DurationMS], or until SIGTERM where that is 0; the server measures, and
// answers the client with its values when the client has ended.
//
// What the ends exchange is the driver's own affair. Its events are those of a
// transfer: connected when the server has answered, and a result with
// [Result.Probe]. ElapsedNS runs from just before the first packet may leave until
// the server's values have arrived.

// DriverKind says what a driver carries. Closed list.
type DriverKind string

const (
	KindTransfers DriverKind = "transfer" // measured transfers, verified to the last byte; what every driver was before there were probes
	KindProbe     DriverKind = "probe"    // packets whose delays and losses are measured
)

// Times of a probe.
const (
	// ProbeDrainMS is how long after the last packet a client may wait for the
	// server's values, in milliseconds: queues have to empty, and the question
	// or the answer can be lost.
	ProbeDrainMS = 30_000
	// ProbeLateMS is how long after the end of the packets the server goes on
	// taking them, in milliseconds: a later one counts as lost.
	ProbeLateMS = 1000
)

// ProbeMetrics is what a probe measured, at the receiving end. Times are whole
// nanoseconds. Delays are differences between two nodes' clocks, as these were:
// negative where the receiver's is behind.
type ProbeMetrics struct {
	Sent     int64 `json:"sent"`     // packets handed to the network
	Received int64 `json:"received"` // of those, arrived; each counted once
	Lost     int64 `json:"lost"`     // sent less received
	// Unsent is packets of the pattern that the protocol's congestion control did not
	// let go when they were due. They were never sent: they have no number, and are
	// none of the losses. The pattern offered Sent and Unsent together.
	Unsent     int64 `json:"unsent,omitempty"`
	Duplicated int64 `json:"duplicated"` // arrivals of a packet that had arrived before
	// Reordered is arrivals after a packet with a higher number (RFC 4737, section 3.3).
	Reordered int64 `json:"reordered"`
	// Strays is arrivals that are not this probe's packets: another identity or content.
	Strays int64 `json:"strays,omitempty"`

	SentBytes     int64 `json:"sent_bytes"` // UDP payload, or that of the protocol in its place
	ReceivedBytes int64 `json:"received_bytes"`

	// A burst of losses is lost packets whose numbers follow each other.
	LossBursts       int64 `json:"loss_bursts"`
	LongestLossBurst int64 `json:"longest_loss_burst"` // in packets

	// Delays of the packets that arrived, first arrivals alone; absent where none did.
	Delay *Delays `json:"delay,omitempty"`

	// Of the estimator J (RFC 3550, section 6.4.1) after each arrival from the
	// second on: its mean and its highest value.
	JitterMeanNS int64 `json:"jitter_mean_ns"`
	JitterMaxNS  int64 `json:"jitter_max_ns"`

	// ClockStepNS is the most that the two clocks moved against a monotonic one
	// while the probe ran, added up. Delays are uncertain by it.
	ClockStepNS int64 `json:"clock_step_ns,omitempty"`
	// ProcessTimes: packets arrived when the driver got them, because the kernel
	// tells no time of arrival. Delays and jitter contain what the driver waited
	// for a processor.
	ProcessTimes bool `json:"process_times,omitempty"`

	// Capacity is what a search for it found; nil: the probe is none, or it was ended
	// before one was found. The other values are then of all its packets.
	Capacity *Capacity `json:"capacity,omitempty"`

	// Messages are those of a probe of messages, by size, the smallest first.
	Messages []MessagesOfSize `json:"messages,omitempty"`
}

// Delays is the distribution of one-way delays, in nanoseconds. A percentile is
// the smallest delay that at least so many percent of the packets do not exceed
// (RFC 2330, section 11.3).
type Delays struct {
	MinNS  int64 `json:"min_ns"`
	MeanNS int64 `json:"mean_ns"`
	P50NS  int64 `json:"p50_ns"`
	P95NS  int64 `json:"p95_ns"`
	P99NS  int64 `json:"p99_ns"`
	MaxNS  int64 `json:"max_ns"`
	// PercentilesNS are those from 0 to 100, [DelayPercentiles] of them: the whole
	// distribution, for figures. Optional.
	PercentilesNS []int64 `json:"percentiles_ns,omitempty"`
}

// DelayPercentiles is how many there are of [Delays.PercentilesNS].
const DelayPercentiles = 101

// checkPercentiles refuses a distribution that is not that of the other values.
func (d *Delays) checkPercentiles() error {
	p := d.PercentilesNS
	switch {
	case p == nil:
		return nil
	case len(p) != DelayPercentiles:
		return fmt.Errorf("probe with %d percentiles_ns, expected the %d from 0 to 100", len(p), DelayPercentiles)
	case !slices.IsSorted(p):
		return errors.New("probe with percentiles_ns out of order")
	case p[0] != d.MinNS || p[50] != d.P50NS || p[95] != d.P95NS || p[99] != d.P99NS || p[100] != d.MaxNS:
		return errors.New("probe with percentiles_ns that are not those of its min_ns, p50_ns, p95_ns, p99_ns and max_ns")
	}
	return nil
}

// Check refuses values that contradict each other. Those that contradict what
// others have seen are the executor's to find.
func (p *ProbeMetrics) Check() error {
	for _, c := range []struct {
		name  string
		value int64
	}{
		{"sent", p.Sent}, {"unsent", p.Unsent}, {"received", p.Received}, {"duplicated", p.Duplicated}, {"reordered", p.Reordered}, {"strays", p.Strays},
		{"sent_bytes", p.SentBytes}, {"received_bytes", p.ReceivedBytes}, {"loss_bursts", p.LossBursts}, {"longest_loss_burst", p.LongestLossBurst},
		{"jitter_mean_ns", p.JitterMeanNS}, {"jitter_max_ns", p.JitterMaxNS}, {"clock_step_ns", p.ClockStepNS},
	} {
		if c.value < 0 {
			return fmt.Errorf("probe with negative %s (%d)", c.name, c.value)
		}
	}
	switch {
	case p.Lost != p.Sent-p.Received:
		return fmt.Errorf("probe with %d lost, expected sent less received: %d less %d", p.Lost, p.Sent, p.Received)
	case p.LongestLossBurst > max(p.Lost, 0) || p.LossBursts > max(p.Lost, 0) || (p.LossBursts == 0) != (p.LongestLossBurst == 0) || p.Lost > 0 && p.LossBursts == 0:
		return fmt.Errorf("probe with %d lost in %d bursts, the longest of %d", p.Lost, p.LossBursts, p.LongestLossBurst)
	case p.Reordered > p.Received:
		return fmt.Errorf("probe with %d reordered of %d received", p.Reordered, p.Received)
	case (p.Delay == nil) != (p.Received == 0):
		return fmt.Errorf("probe with %d received, expected delays exactly where packets arrived", p.Received)
	case p.JitterMeanNS > p.JitterMaxNS:
		return fmt.Errorf("probe with jitter_mean_ns %d above jitter_max_ns %d", p.JitterMeanNS, p.JitterMaxNS)
	}
	if p.Delay != nil {
		if err := p.Delay.check(); err != nil {
			return err
		}
	}
	if p.Capacity != nil {
		if err := p.Capacity.check(p); err != nil {
			return err
		}
	}
	return p.checkMessages()
}

// check refuses delays that are not in order.
func (d *Delays) check() error {
	if d.MinNS > d.P50NS || d.P50NS > d.P95NS || d.P95NS > d.P99NS || d.P99NS > d.MaxNS || d.MeanNS < d.MinNS || d.MeanNS > d.MaxNS {
		return fmt.Errorf("probe with delays out of order: %+v", *d)
	}
	return d.checkPercentiles()
}
