package core

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"time"

	"linktrial/protocols/haul/secure"
	"linktrial/protocols/haul/wire"
)

// Times of the handshake.
const (
	firstHello = 120 * time.Millisecond // until the second hello, where the round trip is not known
	lastHello  = time.Second            // longest pause between two hellos
	helloGrows = 1.35

	enoughRefusals = 3 // that end an attempt to connect
)

// prologue binds both ends to version and protocol (Noise, section 6).
var prologue = []byte("haul 1")

// Dial begins a connection to an address. early is given to the other end's
// application with the first packet, before the handshake is complete: it can
// be replayed by whoever recorded it, and without a pre-shared key be read;
// at most 1000 bytes.
func Dial(config Config, remote netip.AddrPort, early []byte) (*Conn, error) {
	config, err := config.withDefaults()
	if err != nil {
		return nil, err
	}
	if len(early) > 1000 {
		return nil, fmt.Errorf("early data of %d bytes, expected at most 1000", len(early))
	}
	c := &Conn{common: common{config: config}, client: true}
	c.init()
	c.peer.address = remote
	if err := c.identify(); err != nil {
		return nil, err
	}
	if c.handshake.initiator, err = secure.NewInitiator(config.Secure, prologue, config.Random); err != nil {
		return nil, err
	}
	c.handshake.message, err = c.handshake.initiator.Hello(c.introduce(early))
	c.handshake.proven = true
	c.handshake.pause = firstHello
	if r := config.Link.RTT; r > 0 {
		// Where much is lost a second hello costs less than a round trip.
		c.handshake.pause = r + r/4 + 5*time.Millisecond
		if config.Link.Loss > 0.02 {
			c.handshake.pause = r/4 + 5*time.Millisecond
		}
	}
	return c, err
}

func (c *Conn) identify() error {
	var b [4]byte
	if _, err := io.ReadFull(c.config.Random, b[:]); err != nil {
		return err
	}
	c.id = binary.BigEndian.Uint32(b[:])
	return nil
}

// introduce is what an end says of itself in the handshake: its identity, its
// buffer, its largest packet; and data.
func (c *Conn) introduce(early []byte) []byte {
	b := binary.BigEndian.AppendUint32(nil, c.id)
	b = binary.AppendUvarint(b, uint64(c.config.Buffer))
	b = binary.AppendUvarint(b, uint64(c.config.Packet))
	return append(b, early...)
}

func (c *Conn) introduced(b []byte) (early []byte, err error) {
	if len(b) < 4 {
		return nil, ErrProtocol
	}
	id := binary.BigEndian.Uint32(b)
	buffer, n := binary.Uvarint(b[4:])
	if n <= 0 {
		return nil, ErrProtocol
	}
	b = b[4+n:]
	packet, n := binary.Uvarint(b)
	if n <= 0 || buffer < MinBuffer || buffer > MaxBuffer || packet < MinPacket || packet > MaxPacket {
		return nil, ErrProtocol
	}
	c.peer.id, c.peerCredit, c.peer.buffer = id, buffer, int(buffer)
	c.packet = min(c.packet, int(packet))
	c.most = c.packet
	return b[n:], nil
}

// writeHello writes the client's next hello where it is time for it.
func (c *Conn) writeHello(now time.Duration, buf []byte) int {
	if now < c.handshake.next {
		return 0
	}
	s := &c.handshake
	b := wire.AppendHello(buf[:0], wire.Hello{Client: c.id, Attempt: s.attempt, Cookie: s.cookie, Message: s.message})
	s.sent[s.attempt] = now
	s.attempt++
	s.next = now + s.pause
	s.pause = min(time.Duration(float64(s.pause)*helloGrows), max(lastHello, c.config.Link.RTT*5/4))
	c.stats.Hellos++
	return len(b)
}

// handleAnswer takes in the server's answer.
func (c *Conn) handleAnswer(now time.Duration, p []byte) {
	a, err := wire.ParseAnswer(p)
	if err != nil || a.Client != c.id || c.state != connecting {
		c.stats.Dropped.Unexpected++
		return
	}
	said, keys, err := c.handshake.initiator.Finish(a.Message)
	if err != nil {
		c.stats.Dropped.Forged++
		return
	}
	if _, err := c.introduced(said); err != nil {
		c.end(err)
		return
	}
	c.encrypt(keys)
	c.state = open
	if at := c.handshake.sent[a.Attempt]; a.Attempt < c.handshake.attempt && now >= at {
		c.rate.roundTrip(now - at)
	}
	// Hellos that were lost tell something of the path before the first packet does.
	if n := uint64(c.handshake.attempt) - uint64(a.Attempt); c.handshake.attempt > 1 && n > 0 {
		c.loss.observe(uint64(a.Attempt)+1, uint64(a.Attempt), uint64(a.Attempt))
	}
	c.lastReceived, c.lastSent, c.lastAckAt, c.largestReceivedAt = now, now, now, now
	c.ping = true // the server must learn that this address is ours
	c.handshake.initiator, c.handshake.message = nil, nil
}

// handleRetry takes in a cookie.
func (c *Conn) handleRetry(now time.Duration, p []byte) {
	id, cookie, err := wire.ParseRetry(p)
	if err != nil || id != c.id || c.state != connecting {
		c.stats.Dropped.Unexpected++
		return
	}
	// A later cookie replaces one that has become old, or was forged, but only
	// the first makes the client say hello at once.
	if c.handshake.cookie == nil {
		c.handshake.next = now
	}
	c.handshake.cookie = append([]byte(nil), cookie...)
}

// handleRefusal takes in a refusal. It is not authenticated, so it counts only while
// there is no connection.
func (c *Conn) handleRefusal(now time.Duration, p []byte) {
	id, sentence, err := wire.ParseRefusal(p)
	if err != nil || id != c.id || c.state != connecting {
		c.stats.Dropped.Unexpected++
		return
	}
	// A hello that was damaged on the way looks like one with another key, so
	// one refusal is not enough.
	if c.handshake.refusals++; c.handshake.refusals < enoughRefusals {
		c.handshake.next = now
		return
	}
	c.end(fmt.Errorf("%w: %q", ErrRefused, sentence))
}

// accept makes the server's end of a connection from a hello; the configuration
// has been checked. The first call of Transmit gives the answer.
func accept(config Config, h wire.Hello, from netip.AddrPort, size int, now time.Duration) (c *Conn, err error) {
	c = &Conn{common: common{config: config}, state: open}
	c.init()
	c.peer.address = from
	if err = c.identify(); err != nil {
		return nil, err
	}
	r, said, err := secure.NewResponder(config.Secure, prologue, h.Message, config.Random)
	if err != nil {
		return nil, err
	}
	early, err := c.introduced(said)
	if err != nil {
		return nil, err
	}
	if c.peer.id != h.Client {
		return nil, ErrProtocol
	}
	message, keys, err := r.Answer(c.introduce(nil))
	if err != nil {
		return nil, err
	}
	c.encrypt(keys)
	c.halfOpen = true
	c.handshake.message = message
	c.handshake.attempt = h.Attempt
	c.handshake.answerOwed = true
	c.handshake.proven = len(h.Cookie) > 0
	c.handshake.budget = amplification * size
	c.handshake.early = append([]byte(nil), early...)
	c.clock.read(now)
	c.lastReceived, c.lastSent, c.lastAckAt = now, now, now
	// What the client had to repeat, this direction or the other has lost.
	if h.Attempt > 0 {
		c.loss.observe(uint64(h.Attempt)+1, uint64(h.Attempt), uint64(h.Attempt))
	}
	return c, nil
}

// handleHelloAgain answers a hello of the same connection that came again.
func (c *Conn) handleHelloAgain(h wire.Hello, size int) {
	if c.handshake.message == nil {
		c.stats.Dropped.Unexpected++
		return
	}
	c.handshake.answerOwed, c.handshake.attempt, c.amplificationLimited = true, h.Attempt, false
	c.handshake.budget += amplification * size
}

// writeAnswer writes the server's answer.
func (c *Conn) writeAnswer(buf []byte) int {
	c.handshake.answerOwed = false
	b := wire.AppendAnswer(buf[:0], wire.Answer{Client: c.peer.id, Attempt: c.handshake.attempt, Message: c.handshake.message})
	if !c.spend(len(b)) {
		return 0
	}
	return len(b)
}

var errMode = errors.New("the other end uses another encryption or pre-shared key")
