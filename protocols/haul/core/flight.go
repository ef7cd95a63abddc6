package core

import (
	"net/netip"
	"time"

	"linktrial/protocols/haul/wire"
)

// Figures of sending.
const (
	reordering    = 3                      // packets that may overtake another before it counts as lost
	probeEvery    = 180 * time.Millisecond // longest pause between two probes of a link that is lost
	probeOften    = 20 * time.Millisecond  // shortest
	blindRounds   = 8                      // round trips' worth of data beyond the window while nothing is heard
	probeShare    = 32                     // and so many times as long as the link needs for one
	patient       = 15 * time.Minute       // so long; then less often
	probeSeldom   = 5 * time.Second
	lostAfter     = 3    // timeouts in a row that make a link lost
	tailWeight    = 0.15 // of a packet's airtime against a round trip saved
	largeLost     = 20   // full-size packets lost in a row, while small ones arrive: the path has become narrower
	requestRoom   = 6    // bytes
	requestCopies = 4
	burstQuantum  = time.Millisecond
	mostLate      = 100 * time.Millisecond // of a wake-up that the next packets make up for
)

// flight is what an end knows of the packets that it has sent.
type flight struct {
	packets            ring[sentPacket] // from the oldest that may still be told to be lost
	largestAcked       uint64           // highest number that is known to have arrived, plus one
	packetsAcked       uint64           // how many are known to have arrived
	burstsAcked        uint64
	bytesSent          uint64 // IP packets' bytes sent so far
	inFlight           int    // bytes beyond largest
	useful             int    // packets beyond largest that can still help
	repairs            int    // of these, repairs
	lastAckEliciting   uint64 // number of the last packet that will be acknowledged, plus one
	presumedLost       uint64 // packets below it are presumed to be lost
	nextSend           time.Duration
	pacingHeld         bool          // a packet waits for nextSend
	wakeLateness       time.Duration // by how much such waits ended too late: the longest of them, which fades
	ping               bool
	probes             int // packets that may be sent although the window is full
	ptoCount           int // timeouts in a row
	lostSince          time.Duration
	lastAckElicitingAt time.Duration // when a packet was sent last that will be acknowledged
	timeoutFrom        time.Duration // or timeout
	lastAckAt          time.Duration // last acknowledgement
	silence            time.Duration // since then, at the last timeout
	sinceAckRequest    int           // packets since acknowledgements were asked for last
	requestedDelay     time.Duration // what the other end knows of ackPatience
	delayRequests      int

	lostLarge, smallArrived int
	smallProbe              bool // the next probe is small
}

// sentPacket is one packet that was sent.
type sentPacket struct {
	at           time.Duration
	bytes        uint64 // IP packets' bytes sent up to it, with it
	symbol       uint64 // number plus one; 0: none
	size         int32
	ackEliciting bool // will be acknowledged
	useful       bool // carries a symbol or a repair
	repair       bool
	large        bool
}

// content is what a packet shall carry.
type content uint8

const (
	contentNone content = iota
	contentPing
	contentSymbol
	contentRepair
	contentUnreliable
)

// Transmit writes the next packet that is to be sent now into buf, which holds
// at least a packet, and returns its length and where it goes; 0: none now. It
// is called until it returns 0: after Receive, Tick, and whenever the application
// did something.
func (c *Conn) Transmit(now time.Duration, buf []byte) (n int, to netip.AddrPort) {
	c.sendTo = c.peer.address
	n = c.transmit(c.clock.read(now), buf)
	return n, c.sendTo
}

func (c *Conn) transmit(now time.Duration, buf []byte) int {
	switch {
	case c.state == connecting:
		return c.writeHello(now, buf)
	case c.handshake.answerOwed:
		return c.writeAnswer(buf)
	case c.state == closed:
		return c.writeClose(now, buf)
	case c.suspended:
		return 0
	case c.suspendNotices > 0:
		c.suspendNotices--
		if c.suspendNotices == 0 {
			c.suspended = true
		}
		return c.seal(now, buf, wire.AppendSuspend(c.begin(buf, false)), sentPacket{})
	case c.move.responseOwed:
		return c.writeResponse(now, buf)
	case c.challengeAt() > 0 && now >= c.challengeAt():
		return c.writeChallenge(now, buf)
	case c.closeDue(now):
		return c.seal(now, buf, wire.AppendClose(c.begin(buf, true), wire.Close{}), sentPacket{ackEliciting: true})
	}
	what, id := c.choose(now)
	acknowledge := c.ackDue(now)
	if what == contentNone && !acknowledge {
		return 0
	}
	return c.compose(now, buf, what, id, acknowledge)
}

// begin writes the header of the next packet; its body follows.
func (c *Conn) begin(buf []byte, asks bool) []byte {
	return wire.AppendData(buf[:0], c.peer.id, c.packets.end(), asks)
}

// compose writes a packet with what has been chosen.
func (c *Conn) compose(now time.Duration, buf []byte, what content, id uint64, acknowledge bool) int {
	asks := what != contentNone && c.asksNow(what)
	b := c.begin(buf, asks)
	limit := c.packet - c.keys.Overhead()
	p := sentPacket{ackEliciting: what != contentNone}
	var payload []byte
	var head [64]byte
	h := head[:0]
	switch what {
	case contentPing:
		h = wire.AppendPing(h)
	case contentSymbol:
		h, payload = wire.AppendSymbol(h, id), c.symbols.at(id).data
		p.symbol, p.useful = id+1, true
	case contentRepair:
		r, ok := c.repairOf(c.coded[:0], uint16(c.packets.end()))
		c.coded = r.Data
		if !ok {
			return 0
		}
		h, payload = wire.AppendRepair(h, r.First, r.Count, r.Skip), r.Data
		p.useful, p.repair = true, true
	case contentUnreliable:
		h, payload = wire.AppendUnreliable(h), c.unreliable
	}
	room := limit - len(b) - len(h) - len(payload)
	if delay := c.ackPatience(); room >= requestRoom && c.requestsDelay(delay) {
		b = wire.AppendRequest(b, wire.Request{Delay: uint64(delay / time.Microsecond)})
		room = limit - len(b) - len(h) - len(payload)
		if c.delayRequests++; c.delayRequests%requestCopies == 0 { // some may be lost
			c.requestedDelay = delay
		}
	}
	if (acknowledge || c.ackPending) && room >= 48 {
		b = c.acknowledgement(now, b, min(room, 400))
	} else if acknowledge && what != contentNone {
		// There is no room: a packet of its own, and the content next time.
		return c.seal(now, buf, c.acknowledgement(now, c.begin(buf, false), min(limit-wire.DataHeader, 600)), sentPacket{})
	}
	if asks {
		c.sinceAckRequest = 0
	}
	b = append(append(b, h...), payload...)
	n := c.seal(now, buf, b, p)
	c.sentContent(now, what, id, n)
	return n
}

// seal protects a packet whose header and body are in b (of buf) and notes it as sent.
func (c *Conn) seal(now time.Duration, buf, b []byte, p sentPacket) int {
	number := c.packets.end()
	c.plain = append(c.plain[:0], b[wire.DataHeader:]...)
	b = c.keys.Seal(b[:wire.DataHeader], b[:wire.DataHeader], number, c.plain)
	if !c.spend(len(b)) {
		// Not before the client has proven its address; its next packet does.
		c.amplificationLimited = true
		return 0
	}
	p.at, p.size = now, int32(len(b)+headers)
	c.bytesSent += uint64(p.size)
	p.bytes = c.bytesSent
	p.large = len(b) > c.packet*9/10
	c.packets.push(p)
	for c.packets.len() > 0 && c.settledPacket(c.packets.first) {
		c.packets.pop()
	}
	if p.ackEliciting {
		c.inFlight += int(p.size)
		c.lastAckEliciting, c.lastAckElicitingAt = number+1, now
		c.sinceAckRequest++
	}
	if p.useful {
		c.useful++
		if p.repair {
			c.repairs++
		}
	}
	c.lastSent = now
	c.stats.PacketsSent++
	c.stats.BytesSent += uint64(p.size)
	return len(b)
}

// settledPacket reports whether no acknowledgement will tell more of a packet.
func (c *Conn) settledPacket(number uint64) bool {
	p := c.packets.at(number)
	if !p.ackEliciting {
		return true
	}
	if number >= c.largestAcked {
		return false
	}
	if p.symbol == 0 {
		return true
	}
	s := c.symbols.at(p.symbol - 1)
	return s == nil || s.state >= arrived || s.last != number
}

// sentContent notes what went out with the newest packet.
func (c *Conn) sentContent(now time.Duration, what content, id uint64, n int) {
	if n == 0 || what == contentNone {
		return
	}
	if c.probes > 0 {
		c.probes--
	}
	c.ping = false
	if what == contentPing {
		c.smallProbe = false
	}
	switch what {
	case contentSymbol:
		s := c.symbols.at(id)
		if s.sends > 0 {
			c.stats.Retransmits++
		}
		s.sends++
		s.last = c.packets.end() - 1
		if s.state == missed {
			s.state = flying
			c.missing--
		}
	case contentRepair:
		c.stats.Repairs++
	case contentUnreliable:
		c.unreliable = nil
	}
	if rate := c.rate.pacing(); rate > 0 {
		c.nextSend = max(c.nextSend, now-c.burst()) + seconds(float64(n+headers)/rate)
	}
}

// observeWakeUp notes that a packet which waited for nextSend may go out. A busy node wakes its
// programs late, and the radio's queue has shrunk meanwhile by what they did not send.
func (c *Conn) observeWakeUp(now time.Duration) {
	if c.pacingHeld {
		c.pacingHeld = false
		c.wakeLateness = max(now-c.nextSend, c.wakeLateness-c.wakeLateness/16)
	}
}

// burst is the time that the pacing may be behind and make up for at once: the depth of
// a bucket of tokens that follows from how late the node wakes this program. After a
// longer time the queue has run empty, and what it did not carry then is lost.
func (c *Conn) burst() time.Duration {
	return max(burstQuantum, c.rate.packetTime()/4, min(c.wakeLateness, mostLate))
}
