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
	// nil: there was none, or nobody watches it.
	Other *OtherTraffic `json:"other,omitempty"`
	// Listeners is the traffic to and from listeners' ports; nil: nobody counts it on this
	// node, as where emulated radios do.
	Listeners *ListenerTraffic `json:"listeners,omitempty"`
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

// ListenerTraffic is packets to and from listeners' ports on the radios' interfaces, with
// their IP headers. Later fragments of IPv4 and all of IPv6 are not counted.
type ListenerTraffic struct {
	Spans []PortSpan `json:"spans,omitempty"` // in order of their begins
	// Unknown is why some may not have been counted; empty: all were.
	Unknown string `json:"unknown,omitempty"`
}

// PortSpan is a time in which packets of one port passed, at about the same rate all the
// time: counts are made every [OtherTrafficStep].
type PortSpan struct {
	Port     int           `json:"port"`     // of the listener; 0: both ends have ports of listeners
	After    time.Duration `json:"after_ns"` // of its begin after Since
	Length   time.Duration `json:"length_ns"`
	Sent     int64         `json:"sent_bytes,omitempty"`     // by this node, or by one whose packets it passes on
	Received int64         `json:"received_bytes,omitempty"` // from another one
	// The same without IP's and the transport's headers.
	SentPayload     int64 `json:"sent_payload_bytes,omitempty"`
	ReceivedPayload int64 `json:"received_payload_bytes,omitempty"`
	// Coarse: nobody knows when within the time: the count was late, or there were too many
	// spans.
	Coarse bool `json:"coarse,omitempty"`
}
