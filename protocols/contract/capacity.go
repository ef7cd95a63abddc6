package contract

import "fmt"

// Capacity is what a probe of the pattern capacity found: the most that the way to the
// receiving end carries, of IP packets (RFC 9097), by a search with UDP packets. Rates are
// of IP packets with their headers, in whole bits per second, where nothing else is said.
//
// The search raises the rate until packets wait, and then tries rates between the
// highest without and the lowest with a growing delay. What it found is then sent for a
// time, over which all values with "held" in their names are taken.
type Capacity struct {
	// MaximumBPS is the Maximum_C_A of RFC 9097, section 5.3: the most that was received
	// in one sub-interval. One begins with an arrival that it does not contain, and ends
	// with the first one that is at least IntervalNS later: the number of packets in it
	// has no error by rounding.
	MaximumBPS int64 `json:"maximum_bps"`
	MeanBPS    int64 `json:"mean_bps"` // received over the whole time held
	// PayloadBPS is MaximumBPS less the headers of IP and UDP.
	PayloadBPS int64 `json:"payload_bps"`
	IntervalNS int64 `json:"interval_ns"` // least length of a sub-interval
	Intervals  int64 `json:"intervals"`   // how many there were

	RateBPS int64 `json:"rate_bps"` // at which the packets held were sent
	// HighBPS is the lowest rate at which packets waited or were dropped; 0: none was.
	HighBPS int64 `json:"high_bps,omitempty"`
	// BottleneckBPS is the rate at the bottleneck, by the distance of the arrivals of
	// packets with consecutive numbers that were sent faster: what the channel loses
	// has taken its time there, and is in it. 0: no step was above the capacity.
	BottleneckBPS int64 `json:"bottleneck_bps,omitempty"`

	PacketBytes  int64 `json:"packet_bytes"`  // of the packets held, with the header of IP
	PayloadBytes int64 `json:"payload_bytes"` // of them, without headers
	// LargestPayloadBytes is the most payload of UDP that arrived without fragments; 0: not
	// known. Larger packets were not sent by the node, or not answered.
	LargestPayloadBytes int64 `json:"largest_payload_bytes,omitempty"`

	HeldNS       int64   `json:"held_ns"` // from the first packet held to the last, as sent
	HeldSent     int64   `json:"held_sent"`
	HeldReceived int64   `json:"held_received"`
	HeldDelay    *Delays `json:"held_delay"`

	Steps    int64         `json:"steps"`     // of the search
	SearchNS int64         `json:"search_ns"` // until the packets held began
	End      CapacityEnded `json:"end"`
}

// CapacityEnded is why a search for the capacity ended. Closed list.
type CapacityEnded string

const (
	CapacityFound   CapacityEnded = "found"   // to 1 %
	CapacityTime    CapacityEnded = "time"    // the probe's time was up: RateBPS and HighBPS are further apart
	CapacityHighest CapacityEnded = "highest" // no step of the highest rate allowed, or possible for the sender, was too much
)

// CapacityEnds are all, in the order of their numbers in datagrams.
var CapacityEnds = []CapacityEnded{CapacityFound, CapacityTime, CapacityHighest}

// LossShare is the share of the packets held that did not arrive.
func (c *Capacity) LossShare() float64 {
	return float64(c.HeldSent-c.HeldReceived) / float64(c.HeldSent)
}

// ratesAgree bounds by how much a rate may exceed one that it cannot: times of sending and
// arrival are not exact, and a queue may empty itself.
const ratesAgree = 1.05

// check refuses values that contradict each other or cannot be: more received than sent.
func (c *Capacity) check(p *ProbeMetrics) error {
	for _, v := range []struct {
		name         string
		value, least int64
	}{
		{"maximum_bps", c.MaximumBPS, 1}, {"mean_bps", c.MeanBPS, 1}, {"payload_bps", c.PayloadBPS, 1}, {"interval_ns", c.IntervalNS, 1}, {"intervals", c.Intervals, 1},
		{"rate_bps", c.RateBPS, 1}, {"high_bps", c.HighBPS, 0}, {"bottleneck_bps", c.BottleneckBPS, 0}, {"payload_bytes", c.PayloadBytes, 1},
		{"packet_bytes", c.PacketBytes, c.PayloadBytes + 1}, {"largest_payload_bytes", c.LargestPayloadBytes, 0}, {"held_ns", c.HeldNS, 1}, {"held_received", c.HeldReceived, 2},
		{"held_sent", c.HeldSent, c.HeldReceived}, {"steps", c.Steps, 1}, {"search_ns", c.SearchNS, 0},
	} {
		if v.value < v.least {
			return fmt.Errorf("probe with capacity.%s %d, expected at least %d", v.name, v.value, v.least)
		}
	}
	interval := float64(c.MaximumBPS) * float64(c.IntervalNS) / 8e9 / float64(c.PacketBytes)
	switch {
	case c.HeldSent > p.Sent || c.HeldReceived > p.Received:
		return fmt.Errorf("probe with capacity of %d packets sent and %d received, of %d and %d in all", c.HeldSent, c.HeldReceived, p.Sent, p.Received)
	case float64(c.MeanBPS) > ratesAgree*float64(c.RateBPS):
		return fmt.Errorf("probe with capacity.mean_bps %d of packets that were sent at rate_bps %d", c.MeanBPS, c.RateBPS)
	case interval > float64(c.HeldReceived):
		return fmt.Errorf("probe with capacity.maximum_bps %d: %.0f packets in interval_ns, of %d received", c.MaximumBPS, interval, c.HeldReceived)
	case c.PayloadBPS > c.MaximumBPS || float64(c.MeanBPS) > ratesAgree*float64(c.MaximumBPS):
		return fmt.Errorf("probe with capacity.payload_bps %d and mean_bps %d above maximum_bps %d", c.PayloadBPS, c.MeanBPS, c.MaximumBPS)
	case c.LargestPayloadBytes > 0 && c.PayloadBytes > c.LargestPayloadBytes:
		return fmt.Errorf("probe with capacity.payload_bytes %d above largest_payload_bytes %d", c.PayloadBytes, c.LargestPayloadBytes)
	case c.HeldDelay == nil:
		return fmt.Errorf("probe with a capacity without held_delay")
	case c.End != CapacityFound && c.End != CapacityTime && c.End != CapacityHighest:
		return fmt.Errorf("probe with capacity.end %q, expected one of %v", c.End, CapacityEnds)
	}
	return c.HeldDelay.check()
}
