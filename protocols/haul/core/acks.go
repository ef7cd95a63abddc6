package core

import (
	"math/bits"
	"net/netip"
	"time"

	"linktrial/protocols/haul/secure"
	"linktrial/protocols/haul/wire"
)

// acks is what an end knows of the packets that it has received, and what it
// owes the other end of that.
type acks struct {
	replay            secure.Replay
	packetsReceived   uint64 // packets
	largestReceived   uint64 // highest number, plus one
	largestReceivedAt time.Duration
	peerByteTime      float64 // seconds; the shortest time between two packets in a row over the bytes of the second; 0: not known
	lossBursts        uint64  // bursts of missing numbers
	ecnCE             uint64
	ackPending        bool
	ackAt             time.Duration
	ackNow            bool
	advertisedCredit  uint64 // last told
	peerRank          int    // of the other end

	requestDelay         time.Duration
	receivedSymbols      symbolSet
	ranges               []wire.Range
	ackFrame             wire.Ack
	frame                wire.Frame
	item                 wire.Item // being read
	plain, coded         []byte
	unreliable           []byte
	amplificationLimited bool
}

// arrivedSymbols is the set of symbols that have arrived: all below next, and a bitmap beyond.
type symbolSet struct {
	next  uint64
	words []uint64 // bit i of words[0]: symbol (next &^ 63) + i
}

func (a *symbolSet) has(id uint64) bool {
	if id < a.next {
		return true
	}
	w := (id - a.next&^63) / 64
	return w < uint64(len(a.words)) && a.words[w]>>(id%64)&1 != 0
}

func (a *symbolSet) add(id uint64) {
	if id < a.next {
		return
	}
	w := int((id - a.next&^63) / 64)
	for len(a.words) <= w {
		a.words = append(a.words, 0)
	}
	a.words[w] |= 1 << (id % 64)
	for len(a.words) > 0 && a.words[0]>>(a.next%64)&1 != 0 {
		base := a.next &^ 63
		ones := bits.TrailingZeros64(^(a.words[0] >> (a.next % 64)))
		a.next += uint64(ones)
		if a.next >= base+64 {
			a.next = base + 64
			a.words = a.words[1:]
		}
	}
	if len(a.words) == 0 {
		a.words = nil
	}
}

// list lists the holes and what has arrived behind them, at most limit.
func (a *symbolSet) list(to []wire.Range, limit int) []wire.Range {
	to = to[:0]
	id, end := a.next, a.next&^63+uint64(len(a.words))*64
	var r wire.Range
	for id < end && len(to) < limit {
		word := a.words[(id-a.next&^63)/64] >> (id % 64)
		left := 64 - id%64
		if r.Arrived == 0 {
			n := min(uint64(bits.TrailingZeros64(word)), left)
			r.Missing += n
			id += n
			if n == left {
				continue
			}
			word >>= n
			left -= n
		}
		n := min(uint64(bits.TrailingZeros64(^word)), left)
		r.Arrived += n
		id += n
		if n < left {
			to = append(to, r)
			r = wire.Range{}
		}
	}
	if r.Arrived > 0 && len(to) < limit {
		to = append(to, r)
	}
	return to
}

// farthest is how far beyond what has arrived a symbol may be: no sender that
// keeps to its credit is farther ahead.
const farthest = 1 << 20

// Receive takes in a packet from an address, with the mark of its IP header
// (RFC 3168). Packets that are not the connection's change nothing; they are
// counted in Stats.
func (c *Conn) Receive(now time.Duration, p []byte, from netip.AddrPort, ecn uint8) {
	now = c.clock.read(now)
	c.stats.PacketsReceived++
	kind, version, err := wire.KindOf(p)
	switch {
	case err != nil:
		c.stats.Dropped.Malformed++
	case kind == wire.KindRefusal && c.client:
		c.handleRefusal(now, p)
	case version != wire.Version:
		c.stats.Dropped.Version++
	case kind == wire.KindAnswer && c.client:
		c.handleAnswer(now, p)
	case kind == wire.KindRetry && c.client:
		c.handleRetry(now, p)
	case (kind == wire.KindData || kind == wire.KindAsking) && c.keys != nil:
		c.handleData(now, p, from, ecn)
	default:
		c.stats.Dropped.Unexpected++
	}
}

func (c *Conn) handleData(now time.Duration, p []byte, from netip.AddrPort, ecn uint8) {
	id, truncated, err := wire.ParseData(p)
	if err != nil || id != c.id {
		c.stats.Dropped.Malformed++
		return
	}
	number := wire.Expand(truncated, c.largestReceived)
	if !c.replay.Check(number) {
		c.stats.Dropped.Replayed++
		return
	}
	body, err := c.keys.Open(p[wire.DataHeader:wire.DataHeader], p[:wire.DataHeader], number, p[wire.DataHeader:])
	if err != nil {
		c.stats.Dropped.Forged++
		return
	}
	if !c.wellFormed(body) {
		c.stats.Dropped.Malformed++
		return
	}
	c.replay.Accept(number)
	c.observeSpacing(now, number, len(p))
	c.packetReceived(now, number, ecn)
	c.addressSeen(now, from, len(p), number+1 == c.largestReceived)
	if c.state == closed {
		c.handleAfterClose(body)
		return
	}
	asks := false
	for len(body) > 0 && c.state != closed {
		body, _ = wire.Next(body, &c.frame)
		asks = c.handleFrame(now, number) || asks
	}
	if k, _, _ := wire.KindOf(p); k == wire.KindAsking && c.state != closed {
		c.ackPending, c.ackNow = true, true
	}
	if asks && !c.ackPending {
		c.ackPending, c.ackAt = true, now+c.requestDelay
	}
}

// wellFormed reports whether all frames and items of a body can be read, before
// any of them takes effect.
func (c *Conn) wellFormed(body []byte) bool {
	f, i := &c.frame, &c.item // on the stack they would be allocated for each packet
	for len(body) > 0 {
		rest, err := wire.Next(body, f)
		if err != nil {
			return false
		}
		if f.Kind == wire.FrameSymbol || f.Kind == wire.FrameUnreliable {
			for b := f.Symbol.Data; len(b) > 0; {
				if b, err = wire.NextItem(b, i); err != nil {
					return false
				}
			}
		}
		body = rest
	}
	return true
}

// mostGap is the longest time between two packets that says something of the way, and
// not of the other end's application: a full packet at 2400 bit/s.
const mostGap = 5 * time.Second

// observeSpacing learns from two packets in a row how long the way from the other end needs
// for a byte: no longer than the second one came after the first.
func (c *Conn) observeSpacing(now time.Duration, number uint64, size int) {
	gap := now - c.largestReceivedAt
	if number != c.largestReceived || c.largestReceivedAt == 0 || c.rate.bandwidth > 0 || gap > mostGap {
		return
	}
	if perByte := gap.Seconds() / float64(size+headers); c.peerByteTime == 0 || perByte < c.peerByteTime {
		c.peerByteTime = max(perByte, 1e-12)
	}
}

// packetReceived notes that a packet has arrived.
func (c *Conn) packetReceived(now time.Duration, number uint64, ecn uint8) {
	c.lastReceived, c.move.seeks = now, false
	c.handshake.message = nil // the client has the answer
	if c.peerSuspended {
		c.peerSuspended = false
		c.events = append(c.events, PeerResumed)
	}
	if ecn == 3 {
		c.ecnCE++
	}
	if c.halfOpen() {
		c.ptoCount, c.timeoutFrom = 0, now // acknowledgements can be overdue from now on
	}
	c.packetsReceived++
	if number >= c.largestReceived {
		if missing := number - c.largestReceived; missing > 0 {
			c.lossBursts++
			if c.open == 0 || c.largestAcked == 0 {
				// What this direction loses is the best guess for the other.
				c.loss.observe(missing+1, missing, 1)
			}
		} else if c.largestAcked == 0 {
			c.loss.observe(1, 0, 0)
		}
		c.largestReceived, c.largestReceivedAt = number+1, now
	}
}

// handleFrame acts on the frame that was read last, and reports whether its packet is to be acknowledged.
func (c *Conn) handleFrame(now time.Duration, number uint64) (asks bool) {
	f := &c.frame
	switch f.Kind {
	case wire.FrameAck:
		c.handleAck(now, &f.Ack)
		return false
	case wire.FrameRequest:
		c.requestDelay = min(time.Duration(min(f.Request.Delay, 1<<40))*time.Microsecond, 5*time.Second)
	case wire.FrameSuspend:
		if number+1 == c.largestReceived { // not a late notice of a suspension that is over
			c.peerSuspended = true
			c.events = append(c.events, PeerSuspended)
		}
		return false
	case wire.FrameChallenge:
		if c.client {
			copy(c.move.answer[:], f.Token)
			c.move.responseOwed = true
		}
		return false
	case wire.FrameResponse:
		c.handleResponse(now, number, f.Token)
	case wire.FrameClose:
		c.handleClose(f.Close)
		return false
	case wire.FrameSymbol:
		return c.symbolArrived(f.Symbol.ID, f.Symbol.Data)
	case wire.FrameRepair:
		return c.repairArrived(number, &f.Repair)
	case wire.FrameUnreliable:
		c.handleItems(f.Symbol.Data, 0, false)
	}
	return true
}

// ackDue reports whether an acknowledgement is to be sent now.
func (c *Conn) ackDue(now time.Duration) bool {
	if c.ackNow || c.ackPending && now >= c.ackAt {
		return true
	}
	// Much more has been read than the other end knows.
	return c.credit()-c.advertisedCredit > uint64(c.config.Buffer)/2 && c.packetsReceived > 0 && c.advertisedCredit > 0
}

// acknowledgement appends what has arrived.
func (c *Conn) acknowledgement(now time.Duration, b []byte, room int) []byte {
	if c.largestReceived == 0 {
		return b
	}
	c.ranges = c.receivedSymbols.list(c.ranges, wire.MaxRanges)
	c.advertisedCredit = c.credit()
	c.ackFrame = wire.Ack{
		Largest: c.largestReceived - 1, Received: c.packetsReceived, Bursts: c.lossBursts,
		At: uint32(c.largestReceivedAt / time.Microsecond), Delay: uint64((now - c.largestReceivedAt) / time.Microsecond),
		CE: c.ecnCE, Credit: c.advertisedCredit, Rank: uint64(c.in.decoder.Rank()), Next: c.receivedSymbols.next, Ranges: c.ranges,
	}
	c.ackPending, c.ackNow = false, false
	c.stats.AcksSent++
	return wire.AppendAck(b, &c.ackFrame, room)
}
