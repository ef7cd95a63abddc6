package core

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"linktrial/protocols/haul/wire"
)

// WriterWaits says that the application has more to send as soon as the queue
// is shorter: the end of the queue is then not the end of the data.
func (c *Conn) WriterWaits(waits bool) { c.writerWaits = waits }

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

// Bytewise says that a stream's reliable sequenced class is read as a stream of
// bytes: what arrives of a message is delivered at once.
func (c *Conn) Bytewise(stream uint16) { c.in.bytewise[stream] = true }

// Next returns the next message that has arrived.
func (c *Conn) Next() (Received, bool) {
	return c.NextOf(func(*Received) bool { return true })
}

// NextOf returns the next message that has arrived and that is wanted.
func (c *Conn) NextOf(want func(*Received) bool) (Received, bool) {
	at := 0
	for at < len(c.in.ready) && !want(&c.in.ready[at]) {
		at++
	}
	if at == len(c.in.ready) {
		return Received{}, false
	}
	r, cost := c.in.ready[at], c.in.costs[at]
	if at == 0 {
		c.in.ready[0] = Received{}
		c.in.ready, c.in.costs = c.in.ready[1:], c.in.costs[1:]
	} else {
		c.in.ready, c.in.costs = slices.Delete(c.in.ready, at, at+1), slices.Delete(c.in.costs, at, at+1)
	}
	if r.Class.Reliable() {
		c.in.buffered -= cost
		c.in.consumed += uint64(cost)
	} else {
		c.in.unreliable -= cost
	}
	return r, true
}
