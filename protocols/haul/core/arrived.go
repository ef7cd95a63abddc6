package core

import (
	"errors"

	"linktrial/protocols/haul/code"
	"linktrial/protocols/haul/wire"
)

// farthest is how far beyond what has arrived a symbol may be: no sender that
// keeps to its credit is farther ahead.
const farthest = 1 << 20

// symbolArrived takes in a source symbol. An error of this and the other methods is
// a violation of the protocol: the other end does what it must not, and what it has
// promised can no longer be kept.
func (r *receiver) symbolArrived(id uint64, data []byte) error {
	if r.receivedSymbols.has(id) {
		r.stats.Duplicates++
		return nil
	}
	if id > r.receivedSymbols.next+farthest || id != r.receivedSymbols.next && r.in.decoder.Held()+len(data) > 2*r.in.limit+1<<20 {
		r.stats.Dropped.Overflow++
		return nil // not taken: it will come again
	}
	recovered := r.in.decoder.Add(id, data)
	if err := r.takeSymbol(id, data); err != nil {
		return err
	}
	return r.recovered(recovered)
}

func (r *receiver) repairArrived(number uint64, f *wire.Repair) error {
	if f.First > r.receivedSymbols.next+farthest {
		r.stats.Dropped.Overflow++
		return nil
	}
	recovered, useful := r.in.decoder.AddRepair(code.Repair{First: f.First, Count: f.Count, Skip: f.Skip, Seed: uint16(number), Data: f.Data})
	if !useful {
		r.stats.Useless++
	}
	return r.recovered(recovered)
}

// recovered takes in the symbols that the decoder has recovered, and frees those
// that no repair refers to any more.
func (r *receiver) recovered(symbols []code.Symbol) error {
	for _, s := range symbols {
		if r.receivedSymbols.has(s.ID) {
			continue
		}
		r.stats.Recovered++
		if err := r.takeSymbol(s.ID, s.Data); err != nil {
			return err
		}
	}
	if r.receivedSymbols.next > code.MaxWindow {
		r.in.decoder.Forget(r.receivedSymbols.next - code.MaxWindow)
	}
	return nil
}

func (r *receiver) takeSymbol(id uint64, data []byte) error {
	r.receivedSymbols.add(id)
	return r.handleItems(data, id, true)
}

// handleItems acts on the items of a symbol, or of an unreliable body.
func (r *receiver) handleItems(b []byte, id uint64, reliable bool) error {
	i := &r.item
	for len(b) > 0 {
		rest, err := wire.NextItem(b, i)
		if err != nil {
			return errors.New("a recovered symbol cannot be read")
		}
		b = rest
		switch {
		case i.Kind != wire.ItemVoid && i.Class.Reliable() != reliable, i.Kind != wire.ItemFragment && !reliable:
			err = errors.New("an item is not where its class belongs")
		case i.Kind == wire.ItemVoid && i.Number+i.Offset > id:
			err = errors.New("a symbol voids itself or later ones")
		case i.Kind == wire.ItemFragment && reliable:
			err = r.fragmentArrived(i)
		case i.Kind == wire.ItemFragment:
			r.unreliableArrived(i)
		case i.Kind == wire.ItemVoid:
			r.voidSymbols(i.Number, i.Offset)
		case i.Kind == wire.ItemCancel:
			err = r.handleCancel(i)
		case i.Kind == wire.ItemFinish:
			k := r.classOf(i)
			k.end = i.Number + 1
			r.finishClass(k)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *receiver) classOf(i *wire.Item) *inClass {
	key := classKey(uint16(i.Stream), i.Class)
	k := r.in.classes[key]
	if k == nil {
		k = &inClass{stream: uint16(i.Stream), class: i.Class}
		r.in.classes[key] = k
	}
	return k
}

// voidSymbols notes symbols that will not come any more.
func (r *receiver) voidSymbols(first, count uint64) {
	for id := max(first, r.receivedSymbols.next); id < first+count; id++ {
		if !r.receivedSymbols.has(id) {
			r.in.decoder.Void(id)
			r.receivedSymbols.add(id)
		}
	}
}

// settleMessage notes that a message is over.
func (r *receiver) settleMessage(k *inClass, n uint64) error {
	if n != k.next {
		if r.in.ahead >= mostAhead {
			return errors.New("too many messages are ahead of one that has not arrived")
		}
		if k.ahead == nil {
			k.ahead = map[uint64]struct{}{}
		}
		k.ahead[n] = struct{}{}
		r.in.ahead++
		return nil
	}
	k.next++
	for len(k.ahead) > 0 {
		if _, ok := k.ahead[k.next]; !ok {
			return nil
		}
		delete(k.ahead, k.next)
		r.in.ahead--
		k.next++
	}
	return nil
}

// handleCancel gives up a message. The other end has counted what it sent of it
// against the credit, so all of that is given back, arrived or not.
func (r *receiver) handleCancel(i *wire.Item) error {
	k := r.classOf(i)
	if k.over(i.Number) {
		return nil
	}
	given := 0
	if m := k.messages[i.Number]; m != nil {
		given = m.given
		r.in.buffered -= m.cost
		delete(k.messages, i.Number)
	}
	if int(i.Offset) < given || int(i.Offset) > r.in.limit {
		return errors.New("a message is cancelled with a length that it cannot have")
	}
	r.in.consumed += uint64(int(i.Offset) - given + messageCost)
	if err := r.settleMessage(k, i.Number); err != nil {
		return err
	}
	if k.class.Sequenced() {
		r.deliverInOrder(k)
	}
	r.finishClass(k)
	return nil
}

// fragmentArrived takes in a part of a reliable message.
func (r *receiver) fragmentArrived(i *wire.Item) (err error) {
	k := r.classOf(i)
	if k.over(i.Number) {
		return nil // sent again in smaller symbols, or cancelled
	}
	to := int(i.Offset) + len(i.Data)
	m, grows := k.messages[i.Number], 0
	switch {
	case m == nil:
		grows = to + messageCost
	case m.length >= 0 && to > m.length || i.Last && (m.length >= 0 && to != m.length || to < m.given+len(m.data)):
		return errors.New("parts of a message contradict each other")
	default:
		grows = max(to-m.given-len(m.data), 0)
	}
	if r.in.buffered+grows > r.in.limit {
		return errors.New("more is sent than the credit allows")
	}
	m = k.message(i.Number)
	m.add(i)
	m.cost = len(m.data) + messageCost
	r.in.buffered += grows
	switch {
	case k.class.Sequenced():
		r.deliverInOrder(k)
	case m.complete():
		delete(k.messages, i.Number)
		err = r.settleMessage(k, i.Number)
		r.deliver(k, m, m.data)
	}
	r.finishClass(k)
	return err
}

// unreliableArrived takes in a part of an unreliable message.
func (r *receiver) unreliableArrived(i *wire.Item) {
	k := r.classOf(i)
	to := int(i.Offset) + len(i.Data)
	m, grows := k.messages[i.Number], to+messageCost
	if m != nil {
		grows = max(to-len(m.data), 0)
	}
	if i.Number < k.next || r.in.unreliable+grows > r.in.limit {
		r.stats.Dropped.Overflow++
		return
	}
	if m != nil && (m.length >= 0 && to > m.length || i.Last && to < len(m.data)) {
		r.stats.Dropped.Malformed++
		return
	}
	m = k.message(i.Number)
	m.add(i)
	m.cost = len(m.data) + messageCost
	r.in.unreliable += grows
	if m.complete() {
		delete(k.messages, i.Number)
		if k.class.Sequenced() {
			r.dropBelow(k, i.Number)
			k.next = i.Number + 1
		}
		r.deliver(k, m, m.data)
		return
	}
	r.evictOldest(k)
}

// evictOldest forgets the oldest incomplete message of an unreliable class that has too many.
func (r *receiver) evictOldest(k *inClass) {
	if len(k.messages) <= mostUnordered {
		return
	}
	oldest := ^uint64(0)
	for n := range k.messages {
		oldest = min(oldest, n)
	}
	r.dropBelow(k, oldest+1)
	k.next = max(k.next, oldest+1)
}

// dropBelow drops the incomplete messages of an unreliable class below n.
func (r *receiver) dropBelow(k *inClass, n uint64) {
	for o, m := range k.messages {
		if o < n {
			r.in.unreliable -= m.cost
			delete(k.messages, o)
		}
	}
}

// deliverInOrder hands on what is complete and in its order; of a stream that is
// read as bytes also the beginning of what is not complete.
func (r *receiver) deliverInOrder(k *inClass) {
	for {
		m := k.messages[k.next]
		if m == nil {
			return
		}
		if m.complete() {
			delete(k.messages, k.next)
			_ = r.settleMessage(k, k.next) // fails for a later one only
			r.deliver(k, m, m.data)
			continue
		}
		if r.in.bytewise[k.stream] && len(m.spans) > 0 && m.spans[0].from == 0 && m.spans[0].to > m.given {
			n := m.spans[0].to - m.given
			r.deliver(k, &inMessage{tag: m.tag, cost: n}, m.data[:n:n])
			m.data, m.given, m.cost = m.data[n:], m.given+n, m.cost-n
			if len(m.data) == 0 {
				m.data = nil
			}
		}
		return
	}
}

// finishClass tells the application that a class has no more messages, once all are over.
func (r *receiver) finishClass(k *inClass) {
	if k.end > 0 && !k.ended && k.next >= k.end-1 {
		k.ended = true
		r.in.ready = append(r.in.ready, Received{Stream: k.stream, Class: k.class, End: true})
		r.in.costs = append(r.in.costs, 0)
	}
}

func (r *receiver) deliver(k *inClass, m *inMessage, data []byte) {
	r.stats.MessagesReceived++
	r.in.ready = append(r.in.ready, Received{Stream: k.stream, Class: k.class, Tag: m.tag, Data: data})
	r.in.costs = append(r.in.costs, m.cost)
}
