package core

import (
	"net/netip"
	"time"

	"linktrial/protocols/haul/wire"
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
