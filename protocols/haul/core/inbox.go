package core

import (
	"fmt"
	"slices"

	"linktrial/protocols/haul/code"
	"linktrial/protocols/haul/wire"
)

// Received is a message that has arrived; or, of a stream that is read as
// bytes, a part of one.
type Received struct {
	Stream uint16
	Class  wire.Class
	Tag    uint32
	Data   []byte
	// End: the stream's class has no more messages; Data is empty.
	End bool
}

// inbox puts what arrives together.
type inbox struct {
	decoder    *code.Decoder
	limit      int
	buffered   int    // what reliable messages count that have not been read, up to limit: the other end keeps to the credit
	unreliable int    // the same of the other classes: beyond limit they are dropped
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

// credit is how many bytes the other end may have sent.
func (c *Conn) credit() uint64 { return c.in.consumed + uint64(c.config.Buffer) }

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

// symbolArrived takes in a source symbol.
func (c *Conn) symbolArrived(id uint64, data []byte) (asks bool) {
	if c.receivedSymbols.has(id) {
		c.stats.Duplicates++
		return true
	}
	if id > c.receivedSymbols.next+farthest || id != c.receivedSymbols.next && c.in.decoder.Held()+len(data) > 2*c.in.limit+1<<20 {
		c.stats.Dropped.Overflow++
		return true // not taken: it will come again
	}
	recovered := c.in.decoder.Add(id, data)
	c.takeSymbol(id, data)
	for _, s := range recovered {
		c.recovered(s)
	}
	c.forgetSymbols()
	return true
}

func (c *Conn) repairArrived(number uint64, r *wire.Repair) (asks bool) {
	if r.First > c.receivedSymbols.next+farthest {
		c.stats.Dropped.Overflow++
		return true
	}
	recovered, useful := c.in.decoder.AddRepair(code.Repair{First: r.First, Count: r.Count, Skip: r.Skip, Seed: uint16(number), Data: r.Data})
	if !useful {
		c.stats.Useless++
	}
	for _, s := range recovered {
		c.recovered(s)
	}
	c.forgetSymbols()
	return true
}

func (c *Conn) recovered(s code.Symbol) {
	if c.receivedSymbols.has(s.ID) {
		return
	}
	c.stats.Recovered++
	c.takeSymbol(s.ID, s.Data)
}

func (c *Conn) takeSymbol(id uint64, data []byte) {
	c.receivedSymbols.add(id)
	c.handleItems(data, id, true)
}

// forgetSymbols frees the symbols that no repair refers to any more.
func (c *Conn) forgetSymbols() {
	if c.receivedSymbols.next > code.MaxWindow {
		c.in.decoder.Forget(c.receivedSymbols.next - code.MaxWindow)
	}
}

// violated ends the connection: the other end does what it must not, and what
// it has promised can no longer be kept.
func (c *Conn) violated(what string) {
	if c.state == closed {
		return
	}
	c.Abort("protocol violated: " + what)
	c.err = fmt.Errorf("%w: %s", ErrProtocol, what)
}

// handleItems acts on the items of a symbol, or of an unreliable body.
func (c *Conn) handleItems(b []byte, id uint64, reliable bool) {
	i := &c.item
	for len(b) > 0 && c.state != closed {
		rest, err := wire.NextItem(b, i)
		if err != nil {
			c.violated("a recovered symbol cannot be read")
			return
		}
		b = rest
		switch {
		case i.Kind != wire.ItemVoid && i.Class.Reliable() != reliable, i.Kind != wire.ItemFragment && !reliable:
			c.violated("an item is not where its class belongs")
		case i.Kind == wire.ItemVoid && i.Number+i.Offset > id:
			c.violated("a symbol voids itself or later ones")
		case i.Kind == wire.ItemFragment && reliable:
			c.fragmentArrived(i)
		case i.Kind == wire.ItemFragment:
			c.unreliableArrived(i)
		case i.Kind == wire.ItemVoid:
			c.voidSymbols(i.Number, i.Offset)
		case i.Kind == wire.ItemCancel:
			c.handleCancel(i)
		case i.Kind == wire.ItemFinish:
			k := c.classOf(i)
			k.end = i.Number + 1
			c.finishClass(k)
		}
	}
}

func (c *Conn) classOf(i *wire.Item) *inClass {
	key := classKey(uint16(i.Stream), i.Class)
	k := c.in.classes[key]
	if k == nil {
		k = &inClass{stream: uint16(i.Stream), class: i.Class}
		c.in.classes[key] = k
	}
	return k
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

// voidSymbols notes symbols that will not come any more.
func (c *Conn) voidSymbols(first, count uint64) {
	for id := max(first, c.receivedSymbols.next); id < first+count; id++ {
		if !c.receivedSymbols.has(id) {
			c.in.decoder.Void(id)
			c.receivedSymbols.add(id)
		}
	}
}

// over reports whether a message has been delivered or cancelled (reliable classes).
func (k *inClass) over(n uint64) bool {
	if n < k.next {
		return true
	}
	_, ok := k.ahead[n]
	return ok
}

// settleMessage notes that a message is over.
func (c *Conn) settleMessage(k *inClass, n uint64) {
	if n != k.next {
		if c.in.ahead >= mostAhead {
			c.violated("too many messages are ahead of one that has not arrived")
			return
		}
		if k.ahead == nil {
			k.ahead = map[uint64]struct{}{}
		}
		k.ahead[n] = struct{}{}
		c.in.ahead++
		return
	}
	k.next++
	for len(k.ahead) > 0 {
		if _, ok := k.ahead[k.next]; !ok {
			return
		}
		delete(k.ahead, k.next)
		c.in.ahead--
		k.next++
	}
}

// handleCancel gives up a message. The other end has counted what it sent of it
// against the credit, so all of that is given back, arrived or not.
func (c *Conn) handleCancel(i *wire.Item) {
	k := c.classOf(i)
	if k.over(i.Number) {
		return
	}
	given := 0
	if m := k.messages[i.Number]; m != nil {
		given = m.given
		c.in.buffered -= m.cost
		delete(k.messages, i.Number)
	}
	if int(i.Offset) < given || int(i.Offset) > c.in.limit {
		c.violated("a message is cancelled with a length that it cannot have")
		return
	}
	c.in.consumed += uint64(int(i.Offset) - given + messageCost)
	c.settleMessage(k, i.Number)
	if k.class.Sequenced() {
		c.deliverInOrder(k)
	}
	c.finishClass(k)
}

// fragmentArrived takes in a part of a reliable message.
func (c *Conn) fragmentArrived(i *wire.Item) {
	k := c.classOf(i)
	if k.over(i.Number) {
		return // sent again in smaller symbols, or cancelled
	}
	to := int(i.Offset) + len(i.Data)
	m, grows := k.messages[i.Number], 0
	switch {
	case m == nil:
		grows = to + messageCost
	case m.length >= 0 && to > m.length || i.Last && (m.length >= 0 && to != m.length || to < m.given+len(m.data)):
		c.violated("parts of a message contradict each other")
		return
	default:
		grows = max(to-m.given-len(m.data), 0)
	}
	if c.in.buffered+grows > c.in.limit {
		c.violated("more is sent than the credit allows")
		return
	}
	m = k.message(i.Number)
	m.add(i)
	m.cost = len(m.data) + messageCost
	c.in.buffered += grows
	switch {
	case k.class.Sequenced():
		c.deliverInOrder(k)
	case m.complete():
		delete(k.messages, i.Number)
		c.settleMessage(k, i.Number)
		c.deliver(k, m, m.data)
	}
	c.finishClass(k)
}

// unreliableArrived takes in a part of an unreliable message.
func (c *Conn) unreliableArrived(i *wire.Item) {
	k := c.classOf(i)
	to := int(i.Offset) + len(i.Data)
	m, grows := k.messages[i.Number], to+messageCost
	if m != nil {
		grows = max(to-len(m.data), 0)
	}
	if i.Number < k.next || c.in.unreliable+grows > c.in.limit {
		c.stats.Dropped.Overflow++
		return
	}
	if m != nil && (m.length >= 0 && to > m.length || i.Last && to < len(m.data)) {
		c.stats.Dropped.Malformed++
		return
	}
	m = k.message(i.Number)
	m.add(i)
	m.cost = len(m.data) + messageCost
	c.in.unreliable += grows
	if m.complete() {
		delete(k.messages, i.Number)
		if k.class.Sequenced() {
			c.dropBelow(k, i.Number)
			k.next = i.Number + 1
		}
		c.deliver(k, m, m.data)
		return
	}
	c.evictOldest(k)
}

// evictOldest forgets the oldest incomplete message of an unreliable class that has too many.
func (c *Conn) evictOldest(k *inClass) {
	if len(k.messages) <= mostUnordered {
		return
	}
	oldest := ^uint64(0)
	for n := range k.messages {
		oldest = min(oldest, n)
	}
	c.dropBelow(k, oldest+1)
	k.next = max(k.next, oldest+1)
}

// dropBelow drops the incomplete messages of an unreliable class below n.
func (c *Conn) dropBelow(k *inClass, n uint64) {
	for o, m := range k.messages {
		if o < n {
			c.in.unreliable -= m.cost
			delete(k.messages, o)
		}
	}
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

// deliverInOrder hands on what is complete and in its order; of a stream that is
// read as bytes also the beginning of what is not complete.
func (c *Conn) deliverInOrder(k *inClass) {
	for {
		m := k.messages[k.next]
		if m == nil {
			return
		}
		if m.complete() {
			delete(k.messages, k.next)
			c.settleMessage(k, k.next)
			c.deliver(k, m, m.data)
			continue
		}
		if c.in.bytewise[k.stream] && len(m.spans) > 0 && m.spans[0].from == 0 && m.spans[0].to > m.given {
			n := m.spans[0].to - m.given
			c.deliver(k, &inMessage{tag: m.tag, cost: n}, m.data[:n:n])
			m.data, m.given, m.cost = m.data[n:], m.given+n, m.cost-n
			if len(m.data) == 0 {
				m.data = nil
			}
		}
		return
	}
}

// finishClass tells the application that a class has no more messages, once all are over.
func (c *Conn) finishClass(k *inClass) {
	if k.end > 0 && !k.ended && k.next >= k.end-1 {
		k.ended = true
		c.in.ready = append(c.in.ready, Received{Stream: k.stream, Class: k.class, End: true})
		c.in.costs = append(c.in.costs, 0)
	}
}

func (c *Conn) deliver(k *inClass, m *inMessage, data []byte) {
	c.stats.MessagesReceived++
	c.in.ready = append(c.in.ready, Received{Stream: k.stream, Class: k.class, Tag: m.tag, Data: data})
	c.in.costs = append(c.in.costs, m.cost)
}
