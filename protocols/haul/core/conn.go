package core

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"linktrial/protocols/haul/secure"
	"linktrial/protocols/haul/wire"
)

type state uint8

const (
	connecting state = iota // client: no answer yet
	open
	closing // the application has closed; what it sent is still on its way
	closed
)

// Why a connection ended.
var (
	ErrRefused  = errors.New("refused by the other end")
	ErrAborted  = errors.New("connection aborted by the other end")
	ErrDead     = errors.New("nothing has arrived from the other end for too long")
	ErrProtocol = errors.New("the other end does not keep to the protocol")
)

// AbortError is why a connection ended that the other end has aborted. It is
// ErrAborted for errors.Is.
type AbortError struct {
	// Reason is what the other end said, for people; "" where it said nothing. It
	// has at most 200 characters, which may be any.
	Reason string
}

func (e *AbortError) Error() string {
	if e.Reason == "" {
		return ErrAborted.Error()
	}
	return fmt.Sprintf("%v: %q", ErrAborted, e.Reason)
}

// Is reports whether target is ErrAborted.
func (e *AbortError) Is(target error) bool { return target == ErrAborted }

// peer is what the other end said of itself.
type peer struct {
	id      uint32
	address netip.AddrPort
	buffer  int
}

// Conn is one end of a connection. It joins a sender and a receiver, which do not
// know of each other, and has what concerns both: handshake, encryption, addresses,
// times, the end.
type Conn struct {
	common
	sender
	receiver
	timers
	ending

	client    bool
	state     state
	err       error // why closed, nil for an orderly end
	id        uint32
	peer      peer
	keys      *secure.Keys
	handshake handshake
	move      move
	sendTo    netip.AddrPort // of the packet that is being made
	suspended bool           // by the application
	frame     wire.Frame     // being read
	plain     []byte
}

// init makes the parts of a connection.
func (c *Conn) init() {
	c.sender.common, c.receiver.common = &c.common, &c.common
	c.sender.init()
	c.receiver.init()
}

// encrypt begins to use keys.
func (c *Conn) encrypt(keys *secure.Keys) { c.keys, c.overhead = keys, keys.Overhead() }

// handshake is the client's state until the answer, and what either end keeps of it.
type handshake struct {
	initiator  *secure.Initiator
	message    []byte // the client's first message, or the server's answer
	cookie     []byte
	attempt    uint8
	next       time.Duration // next hello
	pause      time.Duration
	sent       [256]time.Duration
	answerOwed bool   // server: an answer is to be sent
	budget     int    // server: bytes that may be sent to an address that nobody has proven
	proven     bool   // the address is the other end's
	early      []byte // data of the first packet
	refusals   int    // client: refusals so far
	key        helloKey
}

type helloKey struct {
	from    netip.AddrPort
	client  uint32
	message [32]byte
}

// move is what an end knows of a change of the client's address.
type move struct {
	// Of the server.
	tokens *secure.Cookies // made when the first is needed
	count  uint64          // changes so far; a token for an earlier address is void
	to     netip.AddrPort  // where the newest packet came from, if it is not the connection's address
	room   int             // bytes that may still be sent there
	next   time.Duration   // next challenge
	pause  time.Duration   // and the one after it

	// Of the client.
	answer       [wire.TokenSize]byte
	responseOwed bool // answer is to be sent
}

// ending is how a connection ends: what was sent is delivered first, then a
// close goes out until it is answered.
type ending struct {
	closes         int // sent without an answer
	closeAt        time.Duration
	closesLeft     int // packets of a closed connection that still go out
	closeFrame     wire.Close
	suspendNotices int
	confirmed      bool // the other end knows that the connection has ended
}

// Events returns what has happened since the last call.
func (c *Conn) Events() []Event {
	e := c.events
	c.events = nil
	return e
}

// Open reports whether the handshake is complete and the connection has not ended.
func (c *Conn) Open() bool { return c.state == open || c.state == closing }

// Closed reports whether the connection has ended, and why: nil after an orderly end.
func (c *Conn) Closed() (bool, error) { return c.state == closed, c.err }

// Remote is where the other end is, as far as it has proven it.
func (c *Conn) Remote() netip.AddrPort { return c.peer.address }

// Early is what the client sent with its first packet (server).
func (c *Conn) Early() []byte { return c.handshake.early }

// Stats returns the counters and estimates of now.
func (c *Conn) Stats() Stats {
	s := c.stats
	s.RTT, s.RTTVariation, s.MinRTT = c.rate.srtt, c.rate.rttvar, c.rate.minRTT
	s.Timeout = c.rate.timeout()
	s.Queue = c.rate.standing
	s.Rate, s.Pacing = c.rate.bandwidth, c.rate.pacing()
	s.Window, s.InFlight = int(c.rate.window()), c.inFlight
	s.Loss, s.Burst = c.loss.share(), c.loss.burst()
	s.Packet = c.packet
	s.Queued, s.Held = c.out.bytes, c.in.buffered+c.in.unreliable+c.in.decoder.Held()
	return s
}

// Ping asks the other end for a sign of life.
func (c *Conn) Ping() { c.ping = true }

// TooLarge notes that the path refused a packet of so many bytes of UDP payload.
func (c *Conn) TooLarge(size int) {
	if size > MinPacket && size <= c.packet+wire.MaxSkip+1 {
		// A repair with a bitmap may be a little larger than the bound.
		c.shrink(min(size, c.packet) - 1)
	}
}

// Suspend lets the connection fall silent: after a notice to the other end
// nothing is sent, and no time counts, until Resume.
func (c *Conn) Suspend() {
	if c.Open() && !c.suspended {
		c.suspendNotices = 3
	}
}

// Resume ends what Suspend began.
func (c *Conn) Resume(now time.Duration) {
	now = c.clock.read(now)
	if c.suspended || c.suspendNotices > 0 {
		c.suspended, c.suspendNotices, c.ping = false, 0, true
		c.peerSuspended = false // the other end may wait for us, too: ask until it answers
		c.lastReceived = now
		c.ptoCount = 0
		c.lastAckElicitingAt = now
	}
}

func (c *Conn) end(err error) {
	if c.state == closed {
		return
	}
	c.state, c.err = closed, err
	c.sender.end()
	c.receiver.end()
	c.move.to, c.move.responseOwed = netip.AddrPort{}, false
	if errors.Is(err, ErrDead) {
		c.closeFrame = wire.Close{Abort: true, Reason: "nothing was heard from the other end"}
	}
}

// begin writes the header of the next packet; its body follows.
func (c *Conn) begin(buf []byte, asks bool) []byte {
	return wire.AppendData(buf[:0], c.peer.id, c.packets.end(), asks)
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
	c.packetSent(now, len(b), p)
	c.lastSent = now
	return len(b)
}

// amplification is how many times the bytes that came from an address may go
// there before it is known to be the other end's (RFC 9000, section 8.1).
const amplification = 3

// spend takes a packet's bytes from what may be sent to an address that nobody
// has proven; false: not so many.
func (c *Conn) spend(n int) bool {
	left := &c.handshake.budget
	if c.move.to.IsValid() && c.sendTo == c.move.to {
		left = &c.move.room
	} else if c.handshake.proven {
		return true
	}
	if n > *left {
		return false
	}
	*left -= n
	return true
}
