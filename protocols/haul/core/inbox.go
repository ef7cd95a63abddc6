package core

import (
	"slices"

	"linktrial/protocols/haul/code"
	"linktrial/protocols/haul/wire"
)

// inbox puts what arrives together.
type inbox struct {
	decoder    *code.Decoder
	limit      int
	buffered   int    // what reliable messages count that have not been read, up to limit: the other end keeps to the credit
	unreliable int    // of the other classes, which are dropped beyond limit
	consumed   uint64 // what reliable messages count that have been read, or cancelled
	ahead      int    // numbers in ahead of all classes
	classes    map[uint32]*inClass
	ready      []Received
	costs      []int // of the elements of ready
	bytewise   map[uint16]bool
}

// inClass is one class of a stream.
type inClass struct {
	stream   uint16
	class    wire.Class
	next     uint64              // reliable: all below are over; unreliable: lowest that is of interest
	ahead    map[uint64]struct{} // beyond next: over, which is delivered or cancelled (reliable)
	messages map[uint64]*inMessage
	end      uint64 // how many messages there will be, plus one; 0: not known
	ended    bool
}

// inMessage is a message of which something has arrived.
type inMessage struct {
	tag    uint32
	data   []byte // from offset given on
	given  int    // bytes that have been delivered already (bytewise)
	spans  []span
	length int // -1: not known
	cost   int
}

const (
	// mostUnordered bounds the messages of an unreliable class that are incomplete.
	mostUnordered = 64
	// mostAhead bounds the numbers of messages that are over while an earlier one of their class is not.
	mostAhead = 1 << 20
)

func (b *inbox) init(limit int) {
	b.limit = limit
	b.decoder = code.NewDecoder(max(limit/2, 1<<20))
	b.classes = map[uint32]*inClass{}
	b.bytewise = map[uint16]bool{}
}

// end frees what only an open connection needs: a listener keeps a closed one for
// a while. What is complete can still be read.
func (b *inbox) end() {
	b.decoder = code.NewDecoder(0)
	b.classes = map[uint32]*inClass{}
	b.buffered, b.unreliable, b.ahead = 0, 0, 0
	for i, r := range b.ready {
		if r.Class.Reliable() {
			b.buffered += b.costs[i]
		} else {
			b.unreliable += b.costs[i]
		}
	}
}

// message returns the class's message of a number, a new one where there is none.
func (k *inClass) message(n uint64) *inMessage {
	m := k.messages[n]
	if m == nil {
		if k.messages == nil {
			k.messages = map[uint64]*inMessage{}
		}
		m = &inMessage{length: -1, cost: messageCost}
		k.messages[n] = m
	}
	return m
}

// over reports whether a message has been delivered or cancelled (reliable classes).
func (k *inClass) over(n uint64) bool {
	if n < k.next {
		return true
	}
	_, ok := k.ahead[n]
	return ok
}

// add puts a fragment into its place.
func (m *inMessage) add(i *wire.Item) {
	if i.Tag != 0 {
		m.tag = uint32(i.Tag)
	}
	from, to := int(i.Offset), int(i.Offset)+len(i.Data)
	if i.Last {
		m.length = to
	}
	if need := to - m.given; need > len(m.data) {
		m.data = slices.Grow(m.data, need-len(m.data))[:need]
	}
	if skip := m.given - from; skip < len(i.Data) {
		copy(m.data[max(-skip, 0):], i.Data[max(skip, 0):])
	}
	s := span{from, to}
	at := 0
	for at < len(m.spans) && m.spans[at].to < s.from {
		at++
	}
	end := at
	for end < len(m.spans) && m.spans[end].from <= s.to {
		s.from, s.to = min(s.from, m.spans[end].from), max(s.to, m.spans[end].to)
		end++
	}
	m.spans = slices.Replace(m.spans, at, end, s)
}

func (m *inMessage) complete() bool {
	return m.length >= 0 && len(m.spans) == 1 && m.spans[0].from == 0 && m.spans[0].to == m.length
}
