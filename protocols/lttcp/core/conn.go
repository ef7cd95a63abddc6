package core

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"linktrial/protocols/lttcp/wire"
)

// Errors of a connection.
var (
	// ErrReset: the other end, or its listener, has ended the connection.
	ErrReset = errors.New("the connection was reset by the other end")
	// ErrAborted: this end has ended it.
	ErrAborted = errors.New("the connection was aborted")
	// ErrFinished: there is no writing after [Conn.Finish].
	ErrFinished = errors.New("the stream is finished")
)

// Bounds of the handshake: the time between two requests, and how often a server
// repeats its answer. A client that asked under a forged address is spared more.
const (
	mostPatience = 8 * time.Second
	mostAnswers  = 8
)

type state uint8

const (
	asking  state = iota // a client that has no answer
	granted              // a server that has granted a connection
	open
	dead // reset or aborted
)

// Conn is one end of a connection. The caller serialises calls; times count from
// any moment and do not run backwards.
type Conn struct {
	config Config
	client bool
	state  state
	err    error
	key    wire.Key  // of what this end sends
	theirs wire.Key  // and of what the other one does: a packet sent back is not taken
	tokens [2]uint64 // of client and server

	out *sender
	in  *inbox

	// unheard: a client that has its connection and nothing of the server since then,
	// which may not know that it is there.
	unheard bool

	askAt time.Duration // Syn, SynAck or a client's word that it is there again; 0: not
	asked uint
	asks  bool // one is due now
	reset bool // a Reset is due
	heard time.Duration
}

func newConn(config Config, client bool) *Conn {
	c := &Conn{config: config, client: client, in: newInbox(config.Buffer)}
	c.out = newSender(&c.config)
	c.in.limit = int64(config.Buffer)
	return c
}

func token(c *Config) (uint64, error) {
	var b [8]byte
	if _, err := c.Random.Read(b[:]); err != nil {
		return 0, fmt.Errorf("make a token: %w", err)
	}
	return binary.BigEndian.Uint64(b[:]), nil
}

// Dial makes the client's end of a connection.
func Dial(config Config) (*Conn, error) {
	config, err := config.withDefaults()
	if err != nil {
		return nil, err
	}
	c := newConn(config, true)
	if c.tokens[0], err = token(&c.config); err != nil {
		return nil, err
	}
	c.asks = true
	return c, nil
}

// accept makes the server's end for a client that asks.
func accept(config Config, p *wire.Packet, now time.Duration) (*Conn, error) {
	c := newConn(config, false)
	var err error
	if c.tokens[1], err = token(&c.config); err != nil {
		return nil, err
	}
	c.tokens[0] = p.Client
	c.keys()
	c.state, c.asks, c.heard = granted, true, now
	c.peer(p)
	return c, nil
}

// keys makes the keys of both ways once both tokens are known.
func (c *Conn) keys() {
	c.key, c.theirs = wire.Tokens(c.tokens[0], c.tokens[1]), wire.Tokens(c.tokens[1], c.tokens[0])
	if !c.client {
		c.key, c.theirs = c.theirs, c.key
	}
}

// peer takes what the other end takes.
func (c *Conn) peer(p *wire.Packet) {
	c.out.limit = int64(p.Window)
	c.out.most = max(min(c.config.Segment, int(p.Most)), 64)
	c.out.mss = min(c.config.MSS, c.out.most)
	c.out.window = first(c.out.mss)
}

// Receive takes in a packet of the other end's address, with its ECN mark. What
// is not the connection's changes nothing.
func (c *Conn) Receive(now time.Duration, b []byte, ecn uint8) {
	var p wire.Packet
	kind, err := wire.KindOf(b)
	if err != nil {
		return
	}
	if c.client && kind == wire.SynAck {
		key := wire.Tokens(c.tokens[0], 0)
		if wire.Parse(b, &key, &p) == nil && p.Client == c.tokens[0] {
			c.granted(now, &p)
		}
		return
	}
	if c.state == asking || kind == wire.Syn || kind == wire.SynAck || wire.Parse(b, &c.theirs, &p) != nil {
		return
	}
	if c.state == dead {
		c.reset = kind != wire.Reset && errors.Is(c.err, ErrAborted)
		return
	}
	c.heard = now
	if c.state == granted || c.unheard {
		c.state, c.askAt, c.asks, c.unheard = open, 0, false, false
	}
	switch kind {
	case wire.Reset:
		c.end(ErrReset)
	case wire.Ack:
		c.out.onAck(now, &p)
	default:
		c.in.take(&p, ecn)
	}
}

// granted is a client's that has its connection. The answer again means that the
// server has not heard of it.
func (c *Conn) granted(now time.Duration, p *wire.Packet) {
	switch {
	case c.state == asking:
		c.tokens[1] = p.Server
		c.keys()
		c.peer(p)
		c.state, c.asks, c.heard, c.unheard = open, false, now, true
		c.asked = 0
		c.askAgain(now)
	case c.tokens[1] != p.Server:
		return
	}
	c.in.ackDue = c.state == open
}

func (c *Conn) askAgain(now time.Duration) {
	c.askAt = now + min(firstTimeout<<min(c.asked, 10), mostPatience)
	c.asked++
}

func (c *Conn) end(err error) {
	c.state, c.err, c.unheard = dead, err, false
	c.askAt, c.asks = 0, false
}

// Transmit is the next packet to be sent now, written to buf (of [MaxPacket]
// bytes), and its ECN mark; none: nothing is to be sent until something happens.
func (c *Conn) Transmit(now time.Duration, buf []byte) (packet []byte, ecn uint8) {
	buf = buf[:0]
	switch {
	case c.reset:
		c.reset = false
		return wire.Append(buf, &wire.Packet{Kind: wire.Reset}, nil, &c.key), 0
	case c.state == dead:
		return nil, 0
	case c.asks:
		c.asks = false
		if c.askAgain(now); !c.client && c.asked >= mostAnswers {
			c.askAt = 0
		}
		p := wire.Packet{Kind: wire.Syn, Client: c.tokens[0], Server: c.tokens[1], Window: uint32(c.config.Buffer), Most: uint16(c.config.Segment)}
		key := wire.Key{}
		if !c.client {
			p.Kind, key = wire.SynAck, wire.Tokens(c.tokens[0], 0)
		}
		return wire.Append(buf, &p, nil, &key), 0
	case c.state != open:
		return nil, 0
	case c.in.ackDue:
		return c.in.ack(buf, &c.key), 0
	}
	packet = c.out.next(now, buf, &c.key)
	c.out.settle(now)
	if packet == nil {
		return nil, 0
	}
	return packet, 2 // ECT(0), RFC 3168
}

// MaxPacket is how long a packet of a configuration can be.
func MaxPacket(segment int) int { return max(segment+wire.FECHeader, wire.MaxAck) }

// Deadline is when [Conn.Tick] wants to be called; false: not before something happens.
func (c *Conn) Deadline() (at time.Duration, ok bool) {
	for _, t := range [...]time.Duration{c.askAt, c.out.timeoutAt, c.out.probeAt} {
		if t > 0 && (at == 0 || t < at) {
			at = t
		}
	}
	return at, at > 0 && c.state != dead
}

// Tick does what is due.
func (c *Conn) Tick(now time.Duration) {
	if c.state == dead {
		return
	}
	if c.askAt > 0 && now >= c.askAt {
		c.askAt = 0
		if c.unheard {
			c.in.ackDue = true
			c.askAgain(now)
		} else {
			c.asks = true
		}
	}
	c.out.tick(now)
}

// Open reports whether the handshake is over and the connection not dead.
func (c *Conn) Open() bool { return c.state == open }

// Closed reports whether the connection is over, and why: nil where both ends
// have finished and know of each other.
func (c *Conn) Closed() (bool, error) {
	if c.state == dead {
		return true, c.err
	}
	return c.out.finDone && c.in.finished(), nil
}

// Write takes bytes of the application, as many as fit into a queue of a length.
// more says that others follow at once, so that a short segment waits for them.
func (c *Conn) Write(b []byte, queue int, more bool) (int, error) {
	switch {
	case c.state == dead:
		return 0, c.err
	case c.out.ended:
		return 0, ErrFinished
	}
	n := c.out.write(b, queue)
	c.out.more = more || n < len(b)
	return n, nil
}

// NoMore says that nothing follows what Write has taken: a short segment no longer
// waits for it.
func (c *Conn) NoMore() { c.out.more = false }

// Read gives bytes in order; eof: there will be no more.
func (c *Conn) Read(b []byte) (n int, eof bool) {
	n = c.in.takeBytes(b)
	return n, n == 0 && c.in.finished() && len(c.in.ready) == 0
}

// Readable reports whether Read gives bytes or the end.
func (c *Conn) Readable() bool { return len(c.in.ready) > 0 || c.in.finished() }

// Finish ends the stream of this end; what was written still arrives.
func (c *Conn) Finish() {
	c.out.ended = true
	c.out.more = false
}

// Abort ends the connection at once.
func (c *Conn) Abort() {
	if c.state == dead {
		return
	}
	c.reset = c.state != asking
	c.end(ErrAborted)
}

// Stats are values of one end.
type Stats struct {
	Window, Threshold, Flight int // bytes
	Segment                   int // length of segments now
	RTT, RTTVariation         time.Duration
	Timeout                   time.Duration
	Acked                     int64 // bytes of the stream
	Retransmits, Timeouts     int64
	Again                     int64   // bytes of the segments that Retransmits counts
	Losses                    int64   // segments taken as lost
	Proactive, Reactive       int64   // packets of FEC sent
	Restored                  int64   // segments that FEC gave
	Useless                   int64   // packets of FEC that came for what was complete
	Reductions                int64   // of the window, for marks (or losses)
	Marks                     int64   // packets that came marked
	Erasures                  float64 // the estimate
	Held                      int     // bytes that wait to be put in order or to be read
}

// Stats returns the values of now.
func (c *Conn) Stats() Stats {
	s, in := c.out, c.in
	held := in.held
	for _, b := range in.ready {
		held += len(b)
	}
	threshold := s.window.ssthresh
	return Stats{
		Window: s.window.cwnd, Threshold: threshold, Flight: s.pipe, Segment: s.segmentSize(s.window.cwnd),
		RTT: s.clock.srtt, RTTVariation: s.clock.variation, Timeout: s.clock.timeout(),
		Acked: min(s.una, s.cut), Retransmits: s.count.retransmits, Again: s.count.again, Timeouts: s.count.timeouts, Losses: s.count.losses,
		Proactive: s.count.proactive, Reactive: s.count.reactive, Restored: in.restored, Useless: in.useless,
		Reductions: s.count.reductions, Marks: in.marks, Erasures: s.erasures, Held: held,
	}
}
