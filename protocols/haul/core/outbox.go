package core

import (
	"time"

	"linktrial/protocols/haul/wire"
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

func (m *outMessage) over() bool { return m.outcome != 0 }

// expiresAt is when the message is given up, 0 for never.
func (m *outMessage) expiresAt() time.Duration {
	switch {
	case m.over():
		return 0
	case m.numbered:
		return m.DeliverBy
	}
	return earliest(m.DeliverBy, m.SendBy)
}

// cost is what a message counts against the credit.
func (m *outMessage) cost() uint64 { return uint64(len(m.Data) + messageCost) }

// numbering counts the messages of one class of a stream.
type numbering struct {
	next     uint64
	waiting  int // messages that have no number yet
	finished bool
}

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
