package core

import (
	"errors"
	"fmt"
	"time"

	"linktrial/protocols/haul/wire"
)

// Priorities of messages: a higher one goes first.
const (
	LowestPriority  = 0
	HighestPriority = 7
)

// Message is one message to send.
type Message struct {
	Stream   uint16
	Class    wire.Class
	Priority uint8  // LowestPriority to HighestPriority
	Tag      uint32 // for Cancel and Replace; 0: none
	// SendBy is when the message is discarded if nothing of it has been sent,
	// DeliverBy when it is given up if it has not been delivered; 0: never.
	SendBy, DeliverBy time.Duration
	Data              []byte
}

// Outcome is what became of a message.
type Outcome uint8

const (
	Delivered Outcome = iota + 1 // acknowledged as a whole (reliable classes)
	Sent                         // sent as a whole (other classes)
	Expired                      // a deadline passed
	Cancelled                    // by the application
)

// outMessage is a message on its way out.
type outMessage struct {
	Message
	number   uint64
	numbered bool
	finish   bool // the end of its stream's class
	sent     int  // bytes put into symbols
	whole    bool // all of it is in symbols
	flying   int  // symbols with a part of it that are not acknowledged
	outcome  Outcome
	again    []span // parts to send again in smaller symbols
}

type span struct{ from, to int }

func (m *outMessage) over() bool { return m.outcome != 0 }

// Errors of Send.
var (
	ErrTooLarge = errors.New("message is larger than the other end can hold")
	ErrFinished = errors.New("stream is finished")
	ErrClosed   = errors.New("connection is closed")
)

// numbering counts the messages of one class of a stream.
type numbering struct {
	next     uint64
	waiting  int // messages that have no number yet
	finished bool
}

// cost is what a message counts against the credit.
func (m *outMessage) cost() uint64 { return uint64(len(m.Data) + messageCost) }

// outbox holds messages until they have been sent, by priority.
type outbox struct {
	queues [HighestPriority + 1][]*outMessage
	bytes  int // not sent yet
	count  int
	number map[uint32]*numbering // of stream and class
	tags   map[uint64][]*outMessage
	items  []wire.Item // control items to send before messages
	timed  int         // messages with a deadline that are not over
}

func classKey(stream uint16, c wire.Class) uint32 { return uint32(stream)<<2 | uint32(c) }

func tagKey(stream uint16, tag uint32) uint64 { return uint64(stream)<<32 | uint64(tag) }

func (o *outbox) numbering(stream uint16, c wire.Class) *numbering {
	k := classKey(stream, c)
	n := o.number[k]
	if n == nil {
		if o.number == nil {
			o.number = map[uint32]*numbering{}
		}
		n = &numbering{}
		o.number[k] = n
	}
	return n
}

func (o *outbox) add(m *outMessage) {
	p := min(m.Priority, HighestPriority)
	o.queues[p] = append(o.queues[p], m)
	o.bytes += len(m.Data)
	o.count++
	if m.SendBy > 0 || m.DeliverBy > 0 {
		o.timed++
	}
	if m.Tag != 0 {
		if o.tags == nil {
			o.tags = map[uint64][]*outMessage{}
		}
		k := tagKey(m.Stream, m.Tag)
		o.tags[k] = append(o.tags[k], m)
	}
}

// head returns the message that goes next; the classes that want is false for are passed over.
func (o *outbox) head(want func(*outMessage) bool) *outMessage {
	for p := HighestPriority; p >= LowestPriority; p-- {
		q := o.queues[p]
		for len(q) > 0 && (q[0].over() || q[0].whole && len(q[0].again) == 0) {
			q[0] = nil
			q = q[1:]
			o.count--
		}
		o.queues[p] = q
		for _, m := range q {
			if !m.over() && (!m.whole || len(m.again) > 0) && want(m) {
				return m
			}
			if !m.over() {
				break // in order
			}
		}
	}
	return nil
}

// forget takes a message that is over out of what its tag finds.
func (o *outbox) forget(m *outMessage) {
	if m.SendBy > 0 || m.DeliverBy > 0 {
		o.timed--
	}
	if m.Tag == 0 {
		return
	}
	k := tagKey(m.Stream, m.Tag)
	for i, other := range o.tags[k] {
		if other == m {
			o.tags[k] = append(o.tags[k][:i], o.tags[k][i+1:]...)
			break
		}
	}
	if len(o.tags[k]) == 0 {
		delete(o.tags, k)
	}
}

// Send queues a message; its data is copied. Errors: ErrTooLarge, ErrFinished,
// ErrClosed, and what is wrong with the message.
func (c *Conn) Send(_ time.Duration, m Message) error {
	if err := c.acceptable(&m); err != nil {
		return err
	}
	m.Data = append([]byte(nil), m.Data...)
	c.out.add(&outMessage{Message: m})
	c.out.numbering(m.Stream, m.Class).waiting++
	c.stats.MessagesSent++
	return nil
}

// acceptable is what is wrong with a message.
func (c *Conn) acceptable(m *Message) error {
	switch {
	case c.state >= closing:
		return ErrClosed
	case m.Priority > HighestPriority:
		return fmt.Errorf("priority is %d, expected %d to %d", m.Priority, LowestPriority, HighestPriority)
	case m.Class > wire.UnreliableUnsequenced:
		return fmt.Errorf("class is %d, expected 0 to 3", m.Class)
	case c.out.numbering(m.Stream, m.Class).finished:
		return ErrFinished
	case len(m.Data) > c.largestMessage():
		return fmt.Errorf("%w: %d bytes, at most %d", ErrTooLarge, len(m.Data), c.largestMessage())
	}
	return nil
}

// Finish says that a reliable class of a stream has no more messages; the other
// end learns how many there were. Later calls of Send fail with ErrFinished. The
// notice goes behind every message of the class, whatever its priority.
func (c *Conn) Finish(stream uint16, class wire.Class, priority uint8) {
	n := c.out.numbering(stream, class)
	if n.finished || c.state >= closing || !class.Reliable() {
		return
	}
	n.finished = true
	priority = min(priority, HighestPriority)
	for p := range priority {
		for _, m := range c.out.queues[p] {
			if !m.over() && m.Stream == stream && m.Class == class {
				priority = p
			}
		}
		if priority == p {
			break
		}
	}
	c.out.add(&outMessage{Message: Message{Stream: stream, Class: class, Priority: priority}, finish: true})
}

// Cancel gives up every message with the tag that has not been delivered, and
// reports how many there were.
func (c *Conn) Cancel(stream uint16, tag uint32) int {
	list := append([]*outMessage(nil), c.out.tags[tagKey(stream, tag)]...)
	for _, m := range list {
		c.giveUp(m, Cancelled)
	}
	return len(list)
}

// Replace is Cancel of the message's tag, and Send.
func (c *Conn) Replace(now time.Duration, m Message) error {
	if m.Tag == 0 {
		return errors.New("message has no tag, expected one to replace")
	}
	if err := c.acceptable(&m); err != nil {
		return err
	}
	c.Cancel(m.Stream, m.Tag)
	return c.Send(now, m)
}

// Queued is how many bytes of messages have not been sent yet.
func (c *Conn) Queued() int { return c.out.bytes }

func (c *Conn) largestMessage() int {
	return min(wire.MaxMessage, max(c.peer.buffer, MinBuffer)/2)
}

// sendable reports whether the other end's buffer has room for more of a
// message. What is sent again has been counted already. A message is begun when
// there is room for all of it, besides that for the rest of those begun before:
// or else parts of messages, and what waits in order behind them, could fill the
// buffer so that none is ever complete.
func (c *Conn) sendable(m *outMessage) bool {
	if m.finish {
		return c.out.numbering(m.Stream, m.Class).waiting == 0
	}
	return !m.Class.Reliable() || m.numbered || c.sent+c.begun+m.cost() <= c.peer.credit
}

// giveUp ends a message before its time. What of it is in symbols is declared
// void where nothing else is in them, so that nobody waits for it.
func (c *Conn) giveUp(m *outMessage, why Outcome) {
	if m.over() {
		return
	}
	if !m.whole {
		c.out.bytes -= len(m.Data) - m.sent
		if m.numbered && m.Class.Reliable() {
			c.begun -= uint64(len(m.Data) - m.sent)
		}
	}
	c.finishMessage(m, why)
	if !m.numbered {
		c.out.numbering(m.Stream, m.Class).waiting--
		return
	}
	if m.Class.Reliable() {
		c.out.items = append(c.out.items, wire.Item{Kind: wire.ItemCancel, Class: m.Class, Stream: uint64(m.Stream), Number: m.number, Offset: uint64(m.sent)})
		c.voidOf(m)
	}
}

// finishMessage notes what became of a message.
func (c *Conn) finishMessage(m *outMessage, what Outcome) {
	if m.over() {
		return
	}
	m.outcome = what
	c.out.forget(m)
	switch what {
	case Delivered:
		c.stats.MessagesDelivered++
	case Expired:
		c.stats.MessagesExpired++
	case Cancelled:
		c.stats.MessagesCancelled++
	}
	m.Data = nil
}

// expire gives up messages whose deadline has passed.
func (c *Conn) expire(now time.Duration) {
	if c.out.timed == 0 {
		return
	}
	late := func(m *outMessage) bool {
		return !m.over() && (m.DeliverBy > 0 && now >= m.DeliverBy || m.SendBy > 0 && now >= m.SendBy && !m.numbered)
	}
	for p := range c.out.queues {
		for _, m := range c.out.queues[p] {
			if late(m) {
				c.giveUp(m, Expired)
			}
		}
	}
	for n := c.symbols.first; n < c.symbols.end(); n++ {
		s := c.symbols.at(n)
		if s == nil {
			continue // given up with a message before
		}
		for _, part := range s.parts {
			if late(part.of) {
				c.giveUp(part.of, Expired)
			}
		}
	}
}

// nextExpiry is the earliest deadline of a message, 0 where there is none.
func (c *Conn) nextExpiry() time.Duration {
	if c.out.timed == 0 {
		return 0
	}
	var next time.Duration
	look := func(m *outMessage) {
		if m.over() {
			return
		}
		at := m.DeliverBy
		if m.SendBy > 0 && !m.numbered && (at == 0 || m.SendBy < at) {
			at = m.SendBy
		}
		if at > 0 && (next == 0 || at < next) {
			next = at
		}
	}
	for p := range c.out.queues {
		for _, m := range c.out.queues[p] {
			look(m)
		}
	}
	for n := c.symbols.first; n < c.symbols.end(); n++ {
		for _, part := range c.symbols.at(n).parts {
			look(part.of)
		}
	}
	return next
}
