package core

import (
	"encoding/binary"
	"net/netip"
	"time"

	"linktrial/protocols/haul/secure"
	"linktrial/protocols/haul/wire"
)

// The client's address may change under a connection: it has moved, or a router
// has given it another port. But whoever copies its packets can send them from
// anywhere, so the server goes on sending to the address that it has until the
// client has answered a challenge from the new one (cf. RFC 9000, section 8.2).

// challengeBytes is the UDP payload of a packet with a challenge, at most.
const challengeBytes = wire.DataHeader + 1 + wire.TokenSize + 16

// firstChallenge is the pause after the first challenge where no round trip is known.
const firstChallenge = 120 * time.Millisecond

// Moved says that the client is elsewhere now. It asks the other end for a sign
// of life until one comes, even if the other end has announced to be silent: that
// would look for it where it was.
func (c *Conn) Moved() {
	if c.client && c.Open() {
		c.ping, c.seeksPeer = true, true
	}
}

// Moving reports whether the client's newest packet came from an address that it has
// not yet proven to be its own.
func (c *Conn) Moving() bool { return c.move.to.IsValid() }

// addressSeen notes the address of an authentic packet of so many bytes.
func (c *Conn) addressSeen(now time.Duration, address netip.AddrPort, size int, newest bool) {
	if c.client || !address.IsValid() || address == c.peer.address {
		c.handshake.proven, c.amplificationLimited = true, false
		if newest {
			c.move.to = netip.AddrPort{}
		}
		return
	}
	if !newest {
		return
	}
	m := &c.move
	if m.to != address {
		m.to, m.room, m.next = address, 0, now
	}
	m.room += amplification * size
	m.pause = firstChallenge
	if c.rate.srtt > 0 {
		m.pause = max(c.rate.srtt/2, probeOften)
	}
	m.next = min(m.next, now+m.pause)
}

// challengeAt is when the next challenge is due, 0 where none is.
func (c *Conn) challengeAt() time.Duration {
	if !c.move.to.IsValid() || c.move.room < challengeBytes || c.peerSuspended {
		return 0
	}
	return max(c.move.next, 1)
}

// writeChallenge writes a challenge to an address that nobody has proven.
func (c *Conn) writeChallenge(now time.Duration, buf []byte) int {
	m := &c.move
	if m.tokens == nil {
		var err error
		if m.tokens, err = secure.NewCookies(c.config.Random); err != nil {
			m.to = netip.AddrPort{} // without a secret there are no challenges
			return 0
		}
	}
	m.next = now + m.pause
	m.pause *= 2
	c.sendTo = m.to
	token := m.tokens.Make(m.to, binary.BigEndian.AppendUint64(nil, m.count), now)
	return c.seal(now, buf, wire.AppendToken(c.begin(buf, false), wire.FrameChallenge, token), sentPacket{})
}

// writeResponse writes the client's answer to a challenge. It is to be acknowledged,
// as what the server has acknowledged lately went to another address.
func (c *Conn) writeResponse(now time.Duration, buf []byte) int {
	c.move.responseOwed = false
	b := c.begin(buf, true)
	if c.ackPending {
		b = c.acknowledgement(now, b, min(c.packet-challengeBytes, 400))
	}
	c.sinceAckRequest = 0
	return c.seal(now, buf, wire.AppendToken(b, wire.FrameResponse, c.move.answer[:]), sentPacket{ackEliciting: true})
}

// handleResponse takes in the answer to a challenge: it proves the address that it
// came from, if its packet is the newest.
func (c *Conn) handleResponse(now time.Duration, number uint64, token []byte) {
	m := &c.move
	if c.client || !m.to.IsValid() || number+1 != c.largestReceived || m.tokens == nil ||
		!m.tokens.Check(m.to, binary.BigEndian.AppendUint64(nil, m.count), token, now) {
		return
	}
	c.peer.address, m.to = m.to, netip.AddrPort{}
	m.count++
	c.handshake.proven, c.amplificationLimited = true, false
	c.events = append(c.events, AddressChanged)
	if c.open == 0 {
		return
	}
	// What is under way went to the other address, and so did what could not be sent.
	c.useful, c.repairs, c.presumedLost = 0, 0, c.packets.end()
	c.probes = 2
	c.nextSend = min(c.nextSend, now)
}
