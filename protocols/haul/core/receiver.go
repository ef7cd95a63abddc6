package core

import (
	"time"

	"linktrial/protocols/haul/secure"
	"linktrial/protocols/haul/wire"
)

// receiver puts together what arrives, and has what it owes the other end of that.
type receiver struct {
	*common
	in              inbox
	receivedSymbols symbolSet

	replay            secure.Replay
	packetsReceived   uint64
	largestReceived   uint64 // highest number of a packet, plus one
	largestReceivedAt time.Duration
	lossBursts        uint64 // bursts of missing numbers
	ecnCE             uint64

	ackPending       bool
	ackAt            time.Duration
	ackNow           bool
	requestDelay     time.Duration // for which the other end lets acknowledgements wait
	advertisedCredit uint64        // that the other end was told last

	ranges   []wire.Range
	ackFrame wire.Ack
	item     wire.Item // being read
}

func (r *receiver) init() {
	r.in.init(r.config.Buffer)
	r.requestDelay = 50 * time.Millisecond
}

// end frees what only an open connection needs. What is complete can still be read.
func (r *receiver) end() {
	r.in.end()
	r.receivedSymbols = symbolSet{next: r.receivedSymbols.next}
}

// count notes a packet and its mark of congestion (RFC 3168). It reports whether
// the packet is the newest, and how many before it are missing since the last newest.
func (r *receiver) count(now time.Duration, number uint64, ecn uint8) (missing uint64, newest bool) {
	if ecn == 3 {
		r.ecnCE++
	}
	r.packetsReceived++
	if number < r.largestReceived {
		return 0, false
	}
	if missing = number - r.largestReceived; missing > 0 {
		r.lossBursts++
	}
	r.largestReceived, r.largestReceivedAt = number+1, now
	return missing, true
}

// credit is how many bytes the other end may have sent.
func (r *receiver) credit() uint64 { return r.in.consumed + uint64(r.config.Buffer) }

// ackDue reports whether an acknowledgement is to be sent now.
func (r *receiver) ackDue(now time.Duration) bool {
	if r.ackNow || r.ackPending && now >= r.ackAt {
		return true
	}
	// Much more has been read than the other end knows.
	return r.credit()-r.advertisedCredit > uint64(r.config.Buffer)/2 && r.packetsReceived > 0 && r.advertisedCredit > 0
}

// deadline is when an acknowledgement is due, 0 where none is pending.
func (r *receiver) deadline() time.Duration {
	if !r.ackPending {
		return 0
	}
	return max(r.ackAt, 1)
}

// acknowledgement appends what has arrived.
func (r *receiver) acknowledgement(now time.Duration, b []byte, room int) []byte {
	if r.largestReceived == 0 {
		return b
	}
	r.ranges = r.receivedSymbols.list(r.ranges, wire.MaxRanges)
	r.advertisedCredit = r.credit()
	r.ackFrame = wire.Ack{
		Largest: r.largestReceived - 1, Received: r.packetsReceived, Bursts: r.lossBursts,
		At: uint32(r.largestReceivedAt / time.Microsecond), Delay: uint64((now - r.largestReceivedAt) / time.Microsecond),
		CE: r.ecnCE, Credit: r.advertisedCredit, Rank: uint64(r.in.decoder.Rank()), Next: r.receivedSymbols.next, Ranges: r.ranges,
	}
	r.ackPending, r.ackNow = false, false
	r.stats.AcksSent++
	return wire.AppendAck(b, &r.ackFrame, room)
}
