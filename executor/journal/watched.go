package journal

import "time"

// TypeWatched is [Watched]: one after the other, without gaps while the node's agent
// runs, in runs whose plan has rules about what they hold.
const TypeWatched Type = "watched"

// Watched is what a node noticed from Since to Until of what rules of validity are
// about. Its times are by the node's clock as it was at Since.
type Watched struct {
	Since time.Time `json:"since"`
	Until time.Time `json:"until"`
	// ClockStep is by how much the clock stepped, forwards where it is positive, within
	// ClockLook before Until; 0: it did not.
	ClockStep time.Duration `json:"clock_step_ns,omitempty"`
	ClockLook time.Duration `json:"clock_look_ns,omitempty"`
	// Other is the traffic on the radios' interfaces that was not of listeners of a run;
	// nil: there was none, or the plan has no rule about it.
	Other *OtherTraffic `json:"other,omitempty"`
	// Unwatched is why traffic cannot be told apart on this node; empty: it can.
	Unwatched string `json:"unwatched,omitempty"`
	// Host is what the processors of a node that does not lead kept from programs; nil: the
	// plan has no rule about it, or nobody measures on this node.
	Host *HostWatched `json:"host,omitempty"`
}

// OtherTraffic is packets on the radios' interfaces with their headers, sent and received.
type OtherTraffic struct {
	Packets int64          `json:"packets"`
	Bytes   []BytesAt      `json:"bytes"` // in order of time
	Most    []Conversation `json:"most"`  // the largest first
}

// BytesAt is the bytes of a tenth of a second.
type BytesAt struct {
	After time.Duration `json:"after_ns"` // of its begin after Since
	Bytes int64         `json:"bytes"`
}

// OtherTrafficStep is the time that each of [OtherTraffic.Bytes] is about.
const OtherTrafficStep = 100 * time.Millisecond

// Conversation is what one address sent to another.
type Conversation struct {
	What  string `json:"what"` // "UDP 10.77.0.1 → 10.77.0.3:9"
	Bytes int64  `json:"bytes"`
}
