package core

import (
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
	decoder   *code.Decoder
	limit     int
	buffered  int    // bytes of items that have arrived and have not been read
	consumed  uint64 // bytes that have been read, or discarded
	classes   map[uint32]*inClass
	ready     []Received
	costs     []int // of the elements of ready
	bytewise  map[uint16]bool
	partCount int
}

// inClass is one class of a stream.
type inClass struct {
	stream   uint16
	class    wire.Class
	next     uint64 // sequenced: next to deliver; unreliable: lowest that is of interest
	messages map[uint64]*inMessage
	end      uint64 // how many messages there will be, plus one; 0: not known
	ended    bool
}

// inMessage is a message of which something has arrived.
type inMessage struct {
	tag       uint32
	data      []byte
	spans     []span
	length    int // -1: not known
	cost      int
	cancelled bool
	given     int // bytes that have been delivered already (bytewise)
}

// mostUnordered bounds the messages of an unreliable class that are incomplete.
const mostUnordered = 64

func (b *inbox) init(limit int) {
	b.limit = limit
	b.decoder = code.NewDecoder(max(limit/2, 1<<20))
	b.classes = map[uint32]*inClass{}
	b.bytewise = map[uint16]bool{}
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
	c.in.buffered -= cost
	if r.Class.Reliable() {
		c.in.consumed += uint64(cost) // what is loose is not counted against the credit
	}
	return r, true
}

// Readable reports whether Next has a message.
func (c *Conn) Readable() bool { return len(c.in.ready) > 0 }

// symbolArrived takes in a source symbol.
func (c *Conn) symbolArrived(id uint64, data []byte) (asks bool) {
	if c.here.has(id) {
		c.stats.Duplicates++
		return true
	}
	if id > c.here.next+farthest || c.in.buffered+len(data) > c.in.limit+c.in.limit/4+1<<16 {
		c.stats.Dropped.Overflow++
		return true // not taken: it will come again
	}
	recovered := c.in.decoder.Add(id, data)
	c.placed(id, data)
	for _, s := range recovered {
		c.recovered(s)
	}
	c.forget()
	return true
}

func (c *Conn) repairArrived(number uint64, r *wire.Repair) (asks bool) {
	if r.First > c.here.next+farthest {
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
	c.forget()
	return true
}

func (c *Conn) recovered(s code.Symbol) {
	if c.here.has(s.ID) {
		return
	}
	c.stats.Recovered++
	c.placed(s.ID, s.Data)
}

func (c *Conn) placed(id uint64, data []byte) {
	c.here.add(id)
	c.items(data, true)
}

// forget frees the symbols that no repair refers to any more.
func (c *Conn) forget() {
	if c.here.next > code.MaxWindow {
		c.in.decoder.Forget(c.here.next - code.MaxWindow)
	}
}

// items acts on the items of a symbol or a loose body.
func (c *Conn) items(b []byte, reliable bool) {
	var i wire.Item
	for len(b) > 0 {
		rest, err := wire.NextItem(b, &i)
		if err != nil {
			c.stats.Dropped.Malformed++ // a symbol that was recovered from forged repairs, or a fault of the other end
			return
		}
		b = rest
		if i.Kind != wire.ItemVoid && i.Class.Reliable() != reliable {
			c.stats.Dropped.Malformed++
			continue
		}
		switch i.Kind {
		case wire.ItemFragment:
			c.fragmentArrived(&i)
		case wire.ItemVoid:
			c.voided(i.Number, i.Offset)
		case wire.ItemCancel:
			c.cancelled(&i)
		case wire.ItemFinish:
			k := c.class(&i)
			k.end = i.Number + 1
			c.deliver(k)
		}
	}
}

func (c *Conn) class(i *wire.Item) *inClass {
	key := classKey(uint16(i.Stream), i.Class)
	k := c.in.classes[key]
	if k == nil {
		k = &inClass{stream: uint16(i.Stream), class: i.Class, messages: map[uint64]*inMessage{}}
		c.in.classes[key] = k
	}
	return k
}

// voided notes symbols that will not come any more.
func (c *Conn) voided(first, count uint64) {
	if first > c.here.next+farthest {
		return
	}
	for id := first; id < first+count; id++ {
		if !c.here.has(id) {
			c.in.decoder.Void(id)
			c.here.add(id)
		}
	}
}

func (c *Conn) cancelled(i *wire.Item) {
	k := c.class(i)
	m := k.messages[i.Number]
	if i.Number < k.next || m == nil && !k.class.Sequenced() {
		return
	}
	if m == nil {
		m = &inMessage{length: -1}
		k.messages[i.Number] = m
	}
	c.discard(m)
	m.cancelled, m.data, m.spans = true, nil, nil
	if !k.class.Sequenced() {
		delete(k.messages, i.Number)
	}
	c.deliver(k)
}

// discard frees what a message holds.
func (c *Conn) discard(m *inMessage) {
	c.in.buffered -= m.cost
	c.in.consumed += uint64(m.cost)
	m.cost = 0
}

func (c *Conn) fragmentArrived(i *wire.Item) {
	k := c.class(i)
	cost := len(i.Data) + itemCost
	m := k.messages[i.Number]
	if k.class.Reliable() {
		if i.Number < k.next && k.class.Sequenced() || m != nil && m.cancelled {
			c.in.consumed += uint64(cost)
			return
		}
	} else if i.Number < k.next || c.in.buffered+cost > c.in.limit {
		c.stats.Dropped.Overflow++
		return
	}
	if m == nil {
		m = &inMessage{length: -1}
		k.messages[i.Number] = m
		c.evict(k)
	}
	if i.Tag != 0 {
		m.tag = uint32(i.Tag)
	}
	m.add(i)
	m.cost += cost
	c.in.buffered += cost
	c.deliver(k)
}

// evict forgets the oldest incomplete message of an unreliable class that has too many.
func (c *Conn) evict(k *inClass) {
	if k.class.Reliable() || len(k.messages) <= mostUnordered {
		return
	}
	oldest := ^uint64(0)
	for n := range k.messages {
		oldest = min(oldest, n)
	}
	c.in.buffered -= k.messages[oldest].cost
	delete(k.messages, oldest)
	k.next = max(k.next, oldest+1)
}

// add puts a fragment into its place.
func (m *inMessage) add(i *wire.Item) {
	from, to := int(i.Offset), int(i.Offset)+len(i.Data)
	if i.Last {
		m.length = to
	}
	if need := to; need > len(m.data) {
		m.data = slices.Grow(m.data, need-len(m.data))[:need]
	}
	copy(m.data[from:to], i.Data)
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
	return m.length == 0 || m.length > 0 && len(m.spans) == 1 && m.spans[0].from == 0 && m.spans[0].to >= m.length
}

// deliver hands on what is complete and in its order.
func (c *Conn) deliver(k *inClass) {
	switch {
	case k.class == wire.ReliableSequenced:
		c.deliverInOrder(k)
	default:
		for n, m := range k.messages {
			if !m.complete() {
				continue
			}
			delete(k.messages, n)
			if k.class.Sequenced() {
				c.olderThan(k, n)
				k.next = n + 1
			}
			c.hand(k, m, m.data[:m.length])
			k.given(n)
		}
	}
	if k.end > 0 && !k.ended && k.next >= k.end-1 && len(k.messages) == 0 {
		k.ended = true
		c.in.ready = append(c.in.ready, Received{Stream: k.stream, Class: k.class, End: true})
		c.in.costs = append(c.in.costs, 0)
	}
}

// given counts delivered messages of a class without order: its end is when all have been.
func (k *inClass) given(uint64) {
	if k.class == wire.ReliableUnsequenced {
		k.next++
	}
}

// olderThan drops what a newer message of an unreliable sequenced class makes useless.
func (c *Conn) olderThan(k *inClass, n uint64) {
	for o, m := range k.messages {
		if o < n {
			c.in.buffered -= m.cost
			delete(k.messages, o)
		}
	}
}

func (c *Conn) deliverInOrder(k *inClass) {
	for {
		m := k.messages[k.next]
		switch {
		case m == nil:
			return
		case m.cancelled:
			delete(k.messages, k.next)
			k.next++
			continue
		case m.complete():
			delete(k.messages, k.next)
			k.next++
			c.hand(k, m, m.data[m.given:m.length])
			continue
		case c.in.bytewise[k.stream] && len(m.spans) > 0 && m.spans[0].from <= m.given && m.spans[0].to > m.given:
			to := m.spans[0].to
			part := &inMessage{tag: m.tag, cost: to - m.given}
			part.cost = min(part.cost, m.cost)
			m.cost -= part.cost
			c.hand(k, part, append([]byte(nil), m.data[m.given:to]...))
			m.given = to
		}
		return
	}
}

func (c *Conn) hand(k *inClass, m *inMessage, data []byte) {
	c.stats.MessagesReceived++
	c.in.ready = append(c.in.ready, Received{Stream: k.stream, Class: k.class, Tag: m.tag, Data: data})
	c.in.costs = append(c.in.costs, m.cost)
}
