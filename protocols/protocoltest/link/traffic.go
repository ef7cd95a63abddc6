package link

import (
	"maps"
	"net/netip"
	"time"
)

// Traffic is what one lane has seen since it was made, or since [Link.Begin].
type Traffic struct {
	// What came from the sender.
	Packets, Bytes int64
	// Content is what these packets carried: all but the headers of IP and of TCP,
	// UDP, SCTP or DCCP. A protocol of its own over UDP has headers in it, and its
	// handshake: it is never less than the bytes of the stream.
	Content int64
	Flows   int                  // pairs of ports
	Sources map[netip.Addr]int64 // packets by address
	DSCP    map[uint8]int64      // packets of TCP, UDP, SCTP and DCCP by code point (RFC 2474)

	// Passed is the content of the packets that were let through, on their way or
	// handed on: no byte beyond it can have been answered. Delivered are the
	// packets that the other end took, Held those that wait for [Lane.Release].
	Passed    int64
	Delivered int64
	Held      int
	// Lost are the packets that were lost or dropped, Doubled those that were sent on
	// their way twice.
	Lost, Doubled int64

	Came     time.Time // just after the first packet was read
	Marked   time.Time // just after the packet was read with which Content reached the mark of [Link.Begin]
	First    time.Time // just before the first packet was handed on
	Answered time.Time // just before the first packet was handed on that followed one handed on in the other direction
}

// clone is a copy that stays as it is.
func (t *Traffic) clone() Traffic {
	c := *t
	c.Sources, c.DSCP = maps.Clone(t.Sources), maps.Clone(t.DSCP)
	return c
}

// came counts a packet that was read just before at.
func (t *Traffic) came(h header, size int, at time.Time, mark int64) {
	if t.Packets == 0 {
		t.Came = at
	}
	t.Packets++
	t.Bytes += int64(size)
	t.Sources[h.source]++
	if h.transport {
		t.DSCP[h.dscp]++
	}
	before := t.Content
	t.Content += h.content
	if before < mark && t.Content >= mark {
		t.Marked = at
	}
}

// hands notes that a packet is handed on after this call.
func (t *Traffic) hands(other *Traffic) {
	if t.First.IsZero() {
		t.First = time.Now()
	}
	if t.Answered.IsZero() && !other.First.IsZero() {
		t.Answered = time.Now()
	}
}
