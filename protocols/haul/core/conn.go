// Package core is haul without its sockets: a state machine that takes packets,
// messages and the time, and gives packets and the time at which it wants to be
// asked again. It is pure: no goroutine, no clock, no socket, and the same calls
// give the same packets. docs/haul-protocol.md specifies it.
//
// Times are durations since any fixed moment. A Conn is used by one goroutine
// at a time.
package core

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"time"

	"linktrial/protocols/haul/code"
	"linktrial/protocols/haul/secure"
	"linktrial/protocols/haul/wire"
)

// Bounds of a configuration.
const (
	MinPacket     = 256  // bytes of UDP payload
	MaxPacket     = 8972 // of a path with 9000 bytes
	DefaultPacket = 1472 // of a path with 1500 bytes
	MinBuffer     = 64 << 10
	DefaultBuffer = 4 << 20
	MaxBuffer     = 1 << 30
)

// Config is what an end of a connection is told. The zero value is good for
// everything but Random.
type Config struct {
	Secure    secure.Config
	Link      Link // what is known of the radio
	Packet    int  // largest UDP payload to begin with, in bytes; 0: from Link.MTU, or DefaultPacket
	Buffer    int  // bytes that may wait to be put in order or to be read; 0: DefaultBuffer
	KeepAlive time.Duration
	DeadAfter time.Duration // without a packet although some are expected; 0: never
	NoCoding  bool          // no repairs: what is lost is sent again, and nothing ahead of time
	Random    io.Reader
}

func (c Config) withDefaults() (Config, error) {
	if c.Packet == 0 {
		c.Packet = DefaultPacket
		if c.Link.MTU > 0 {
			c.Packet = min(max(c.Link.MTU-headers, MinPacket), MaxPacket)
		}
	}
	if c.Buffer == 0 {
		c.Buffer = DefaultBuffer
	}
	if c.KeepAlive == 0 && c.DeadAfter > 0 {
		c.KeepAlive = c.DeadAfter / 4 // or a connection with nothing to send would end
	}
	switch {
	case c.Packet < MinPacket || c.Packet > MaxPacket:
		return c, fmt.Errorf("packet is %d bytes, expected %d to %d", c.Packet, MinPacket, MaxPacket)
	case c.Buffer < MinBuffer || c.Buffer > MaxBuffer:
		return c, fmt.Errorf("buffer is %d bytes, expected %d to %d", c.Buffer, MinBuffer, MaxBuffer)
	case c.Link.Loss < 0 || c.Link.Loss >= 1 || c.Link.Rate < 0 || c.Link.RTT < 0 || c.Link.MTU < 0:
		return c, errors.New("link: expected a rate, a round trip and an MTU of at least 0, and a loss share from 0 to below 1")
	case c.Random == nil:
		return c, errors.New("no source of randomness")
	}
	return c, c.Secure.Check()
}

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

// peer is what the other end said of itself.
type peer struct {
	id      uint32
	address netip.AddrPort
	credit  uint64 // bytes that may have been sent
	buffer  int
}

// Conn is one end of a connection.
type Conn struct {
	config    Config
	client    bool
	state     state
	err       error // why closed, nil for an orderly end
	id        uint32
	peer      peer
	keys      *secure.Keys
	handshake handshake
	rate      rate
	loss      loss
	stats     Stats
	packet    int // largest UDP payload now

	out     outbox
	in      inbox
	symbols ring[symbol]
	open    int    // symbols that have not arrived
	missing int    // of these, known to be lost
	sent    uint64 // bytes counted against the credit
	begun   uint64 // bytes that will count, of messages of which a part has been sent
	scratch []code.Symbol

	firstMissed uint64 // no missed symbol below it

	sizes sizes
	flight
	acks
	ending
	move          move
	sendTo        netip.AddrPort // of the packet that is being made
	clock         clock
	writerWaits   bool
	suspended     bool // by the application
	peerSuspended bool // the other end is suspended
	events        []Event
	lastReceived  time.Duration
	lastSent      time.Duration
}

// Event is something that the application may want to know at once.
type Event uint8

const (
	LinkLost Event = iota + 1 // nothing has been heard for some round trips although something was asked
	LinkBack
	AddressChanged // the client has proven that it is elsewhere now
	PeerSuspended
	PeerResumed
)

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

// WriterWaits says that the application has more to send as soon as the queue
// is shorter: the end of the queue is then not the end of the data.
func (c *Conn) WriterWaits(waits bool) { c.writerWaits = waits }

// TooLarge notes that the path refused a packet of so many bytes of UDP payload.
func (c *Conn) TooLarge(size int) {
	if size > MinPacket && size <= c.packet+wire.MaxSkip+1 {
		// A repair with a bitmap may be a little larger than the bound.
		c.shrink(min(size, c.packet) - 1)
	}
}

// shrink makes packets smaller, as the path's MTU has become.
func (c *Conn) shrink(to int) {
	c.packet = max(to, MinPacket)
	c.sizes = sizes{most: c.packet}
	c.lostLarge, c.smallArrived = 0, 0
	c.stats.Shrunk++
	c.unreliable = nil // it may be too large now, and is never repeated
	c.resplit()
}

// symbolSize is the largest source symbol that can be sent next: a repair of it
// fits into a packet, with the length that the code puts before it.
func (c *Conn) symbolSize(packet int) int {
	var id [binary.MaxVarintLen64]byte
	head := 2 + binary.PutUvarint(id[:], c.symbols.end()+code.MaxWindow) + 2
	return packet - wire.DataHeader - c.keys.Overhead() - head
}

func (c *Conn) end(err error) {
	if c.state == closed {
		return
	}
	c.state, c.err = closed, err
	c.symbols = ring[symbol]{}
	c.packets = ring[sentPacket]{first: c.packets.end()} // numbers go on
	c.out = outbox{number: c.out.number}
	c.move.to, c.move.responseOwed = netip.AddrPort{}, false
	c.open, c.missing, c.useful, c.repairs, c.inFlight, c.unreliable = 0, 0, 0, 0, 0, nil
	c.in.end()
	c.receivedSymbols, c.scratch, c.coded = symbolSet{next: c.receivedSymbols.next}, nil, nil
	if errors.Is(err, ErrDead) {
		c.closeFrame = wire.Close{Abort: true, Reason: "nothing was heard from the other end"}
	}
}

// Deadline is when Tick wants to be called at the latest; false: not until a
// packet arrives or the application does something.
func (c *Conn) Deadline() (time.Duration, bool) {
	at, ok := c.deadline()
	if ok {
		at = c.clock.callers(at)
	}
	// The deadlines of messages are times of the application.
	if next := c.nextExpiry(); next > 0 && c.Open() && !c.suspended && (!ok || next < at) {
		at, ok = next, true
	}
	if ok {
		c.clock.expected = max(at, c.clock.caller)
	}
	return at, ok
}

// deadline is Deadline without messages, by the connection's clock.
func (c *Conn) deadline() (time.Duration, bool) {
	var at time.Duration
	earlier := func(t time.Duration) {
		if t > 0 && (at == 0 || t < at) {
			at = t
		}
	}
	switch {
	case c.state == closed:
		if c.closesLeft > 0 {
			earlier(1)
		}
		return at, at > 0
	case c.state == connecting:
		return max(c.handshake.next, 1), true
	case c.suspended:
		return 0, false
	}
	if c.ackPending {
		earlier(max(c.ackAt, 1))
	}
	earlier(c.challengeAt())
	if c.timeoutsCount() {
		earlier(c.timeoutAt())
	}
	if c.waiting() {
		earlier(max(c.nextSend, 1))
	}
	if c.config.KeepAlive > 0 && !c.ping && !c.amplificationLimited && c.timeoutAt() == 0 { // or else something is expected anyway
		earlier(max(c.lastSent, c.lastReceived) + c.config.KeepAlive)
	}
	if c.halfOpen() {
		earlier(c.lastReceived + halfOpenFor)
	}
	if c.config.DeadAfter > 0 && !c.peerSuspended {
		earlier(c.lastReceived + c.config.DeadAfter)
	}
	earlier(c.closeAt)
	return at, at > 0
}

// Tick lets time pass. Transmit is to be called after it.
func (c *Conn) Tick(callers time.Duration) {
	now := c.clock.read(callers)
	if c.state == closed || c.state == connecting || c.suspended {
		return
	}
	c.expire(callers)
	if c.config.DeadAfter > 0 && !c.peerSuspended && now >= c.lastReceived+c.config.DeadAfter || c.halfOpen() && now >= c.lastReceived+halfOpenFor {
		c.end(ErrDead)
		return
	}
	if at := c.timeoutAt(); at > 0 && now >= at && c.timeoutsCount() {
		c.timedOut(now)
	}
	if k := c.config.KeepAlive; k > 0 && c.timeoutAt() == 0 && now >= max(c.lastSent, c.lastReceived)+k {
		c.ping = true
	}
	c.tickClose(now)
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
