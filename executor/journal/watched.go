package journal

import (
	"fmt"
	"time"

	"linktrial/executor/runsheet"
)

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

var watchedKind = kindOf([]Type{TypeWatched},
	"all, where the plan has [rules of validity](#rules-of-validity), and over real radios",
	"`since` and `until`: what the node noticed in this time, one record after the other without gaps; `clock_step_ns`, by how much its clock stepped within `clock_look_ns` before `until`; `other`, traffic on the radios' interfaces that was not of a listener: `packets`, `bytes` by tenths of a second (`after_ns` after `since`), the largest conversations (`most`); `listeners`, over real radios: the traffic to and from listeners' ports, as `spans` with `port` (0: both ends have such a port), `after_ns`, `length_ns`, `sent_bytes` and `received_bytes`, of these the transport's payload (`sent_payload_bytes`, `received_payload_bytes`), and `coarse` where nobody knows when within the time; with `unknown`, why some may not have been counted; `unwatched`, why other traffic could not be watched; `host`, with the rule `host` on real radios at nodes that do not lead, what [their processors](#busy-processors) kept from programs. The leading node writes it at trial boundaries, the others every two seconds and synced, all when the clock steps. The times are by the clock as it was at `since`",
	checkWatched,
	nil)

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

// maxWatched is the most steps of time of one record, far above what a node writes.
const maxWatched = 1 << 20

func checkWatched(_ *Record, b *Watched) error {
	if b.Since.Before(Earliest) || !b.Until.Before(Latest) || b.Until.Before(b.Since) || b.ClockLook < 0 || len(b.Unwatched) > MaxText {
		return fmt.Errorf("from %s to %s", b.Since.Format(time.RFC3339), b.Until.Format(time.RFC3339))
	}
	if h := b.Host; h != nil {
		if len(h.Late) > maxWatched || h.Missed < 0 || h.Longest < 0 {
			return fmt.Errorf("%s missed in %d steps", h.Missed, len(h.Late))
		}
		for _, x := range h.Late {
			if x.After < 0 || x.Missed < 0 || x.Missed > HostLateStep {
				return fmt.Errorf("%s missed after %s", x.Missed, x.After)
			}
		}
	}
	if o := b.Other; o != nil {
		if o.Packets < 1 || len(o.Bytes) > maxWatched || len(o.Most) > maxFlows {
			return fmt.Errorf("%d packets of other traffic in %d steps and %d conversations", o.Packets, len(o.Bytes), len(o.Most))
		}
		for _, x := range o.Bytes {
			if x.Bytes < 0 || x.After < 0 {
				return fmt.Errorf("%d bytes after %s", x.Bytes, x.After)
			}
		}
	}
	if l := b.Listeners; l != nil {
		if len(l.Spans) > maxWatched || len(l.Unknown) > MaxText {
			return fmt.Errorf("listeners' traffic in %d spans", len(l.Spans))
		}
		for _, x := range l.Spans {
			if x.Port != 0 && !runsheet.ListenerPort(x.Port) || x.After < 0 || x.Length < 0 || x.Sent < 0 || x.Received < 0 || x.SentPayload < 0 || x.ReceivedPayload < 0 {
				return fmt.Errorf("%d and %d bytes at port %d for %s after %s", x.Sent, x.Received, x.Port, x.Length, x.After)
			}
		}
	}
	return nil
}
