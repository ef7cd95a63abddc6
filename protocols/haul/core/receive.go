package core

import (
	"net/netip"
	"time"

	"linktrial/protocols/haul/wire"
)

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
	c.lastReceived, c.seeksPeer = now, false
	c.handshake.message = nil // the client has the answer
	if c.peerSuspended {
		c.peerSuspended = false
		c.events = append(c.events, PeerResumed)
	}
	if c.halfOpen {
		c.halfOpen, c.ptoCount, c.timeoutFrom = false, 0, now // acknowledgements can be overdue from now on
	}
	// What this direction loses is the best guess for the other.
	missing, newest := c.count(now, number, ecn)
	if missing > 0 && (c.open == 0 || c.largestAcked == 0) {
		c.loss.observe(missing+1, missing, 1)
	} else if newest && missing == 0 && c.largestAcked == 0 {
		c.loss.observe(1, 0, 0)
	}
}

// handleFrame acts on the frame that was read last, and reports whether its packet is to be acknowledged.
func (c *Conn) handleFrame(now time.Duration, number uint64) (asks bool) {
	var err error
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
		err = c.symbolArrived(f.Symbol.ID, f.Symbol.Data)
	case wire.FrameRepair:
		err = c.repairArrived(number, &f.Repair)
	case wire.FrameUnreliable:
		err = c.handleItems(f.Symbol.Data, 0, false)
	}
	if err != nil {
		c.violated(err)
	}
	return true
}
