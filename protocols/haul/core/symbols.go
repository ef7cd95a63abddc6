package core

import (
	"slices"

	"linktrial/protocols/haul/code"
	"linktrial/protocols/haul/wire"
)

// A symbol is what the code works on: some items of reliable messages, sent as
// they are, and combined with others in repairs.
type symbol struct {
	data  []byte
	parts []part
	bytes int    // payload of the application
	last  uint64 // number of the packet that carried it last
	sends int
	state symbolState
}

type symbolState uint8

const (
	flying  symbolState = iota // sent, and not known to be lost
	missed                     // known not to have arrived with packet last
	arrived                    // acknowledged
	void                       // given up
)

// part is the piece of a message that is in a symbol.
type part struct {
	of *outMessage
	span
}

// messageCost is what a message counts beyond its data against the credit: what
// a receiver needs to keep it.
const messageCost = 16

// fill builds the next symbol, or an unreliable body, of at most room bytes. It
// returns nil where nothing may be sent now.
func (c *Conn) fill(room int, reliable bool) (data []byte, parts []part, bytes int) {
	data = make([]byte, 0, room)
	if reliable {
		for len(c.out.items) > 0 && len(data)+32 <= room {
			data = wire.AppendItem(data, &c.out.items[0], false)
			c.out.items = slices.Delete(c.out.items, 0, 1)
		}
	}
	for room-len(data) > 24 {
		m := c.out.head(func(m *outMessage) bool {
			return m.Class.Reliable() == reliable && c.sendable(m)
		})
		if m == nil {
			break
		}
		if m.finish {
			n := c.out.numbering(m.Stream, m.Class)
			data = wire.AppendItem(data, &wire.Item{Kind: wire.ItemFinish, Class: m.Class, Stream: uint64(m.Stream), Number: n.next}, false)
			m.whole, m.numbered = true, true
			parts = append(parts, part{m, span{}})
			continue
		}
		var p part
		data, p = c.fragment(data, room, m)
		if p.of == nil {
			break
		}
		parts = append(parts, p)
		bytes += p.to - p.from
	}
	if len(data) == 0 {
		return nil, nil, 0
	}
	return data, parts, bytes
}

// fragment appends as much of a message as there is room for. It gives the
// message its number with the first fragment, which counts it against the credit.
func (c *Conn) fragment(data []byte, room int, m *outMessage) ([]byte, part) {
	n := c.out.numbering(m.Stream, m.Class)
	if !m.numbered {
		m.number = n.next
	}
	s := span{m.sent, len(m.Data)}
	repeat := len(m.again) > 0
	if repeat {
		s = m.again[0]
	}
	item := wire.Item{Class: m.Class, Stream: uint64(m.Stream), Number: m.number, Offset: uint64(s.from), Tag: uint64(m.Tag)}
	most := room - len(data) - wire.HeadSize(&item)
	end := s.to-s.from >= most-2 // no room for another item behind it
	if !end {
		most -= 2 // its length
	}
	s.to = min(s.to, s.from+most)
	if s.to < s.from || s.to == s.from && s.to < len(m.Data) {
		return data, part{}
	}
	item.Last = s.to == len(m.Data)
	item.Data = m.Data[s.from:s.to]
	data = wire.AppendItem(data, &item, end && room-len(data) <= wire.HeadSize(&item)+len(item.Data)+2)
	if !m.numbered {
		m.numbered = true
		n.next++
		n.waiting--
		if m.Class.Reliable() {
			c.sent += messageCost
			c.begun += uint64(len(m.Data))
		}
	}
	switch {
	case repeat && s.to < m.again[0].to:
		m.again[0].from = s.to
	case repeat:
		m.again = m.again[1:]
	default:
		m.sent = s.to
		m.whole = item.Last
		c.out.bytes -= s.to - s.from
		if m.Class.Reliable() {
			c.sent += uint64(s.to - s.from)
			c.begun -= uint64(s.to - s.from)
		}
	}
	return data, part{m, s}
}

// newSymbol makes the next source symbol, and reports whether there was anything for it.
func (c *Conn) newSymbol() bool {
	room := c.symbolSize(c.sizeNow())
	if c.requestsDelay(c.ackPatience()) {
		room -= requestRoom
	}
	data, parts, bytes := c.fill(room, true)
	c.sizes.turn++
	if data == nil {
		return false
	}
	for _, p := range parts {
		p.of.flying++
	}
	c.symbols.push(symbol{data: data, parts: parts, bytes: bytes, state: missed})
	return true
}

// settleSymbol takes a symbol out of what has to arrive.
func (c *Conn) settleSymbol(id uint64, state symbolState) {
	s := c.symbols.at(id)
	if s == nil || s.state >= arrived {
		return
	}
	if s.state == missed {
		c.missing--
	}
	s.state = state
	c.open--
	if state == arrived {
		c.stats.BytesDelivered += uint64(s.bytes)
	}
	for _, p := range s.parts {
		p.of.flying--
		if p.of.flying == 0 && p.of.whole && len(p.of.again) == 0 && state == arrived {
			c.finishMessage(p.of, Delivered)
		}
	}
	s.parts = nil
	for c.symbols.len() > 0 && c.symbols.at(c.symbols.first).state >= arrived {
		c.symbols.pop()
	}
	c.firstMissed = max(c.firstMissed, c.symbols.first)
}

// voidOf gives up the symbols that carry nothing but messages that are over.
func (c *Conn) voidOf(m *outMessage) {
	for id := c.symbols.first; id < c.symbols.end(); id++ {
		s := c.symbols.at(id)
		if s == nil || s.state >= arrived || len(s.parts) == 0 || s.sends == 0 {
			continue // nil: given up with one before it
		}
		mine, dead := false, true
		for _, p := range s.parts {
			mine = mine || p.of == m
			dead = dead && p.of.over()
		}
		if mine && dead && !s.control() {
			c.voidSymbol(id)
		}
	}
}

// voidSymbol gives a symbol up and tells the other end.
func (c *Conn) voidSymbol(id uint64) {
	if n := len(c.out.items); n > 0 && c.out.items[n-1].Kind == wire.ItemVoid && c.out.items[n-1].Number+c.out.items[n-1].Offset == id && c.out.items[n-1].Offset < wire.MaxVoid {
		c.out.items[n-1].Offset++
	} else {
		c.out.items = append(c.out.items, wire.Item{Kind: wire.ItemVoid, Number: id, Offset: 1})
	}
	c.settleSymbol(id, void)
}

// control reports whether the symbol has items that are no messages' data.
func (s *symbol) control() bool {
	var i wire.Item
	for b := s.data; len(b) > 0; {
		rest, err := wire.NextItem(b, &i)
		if err != nil || i.Kind != wire.ItemFragment {
			return true
		}
		b = rest
	}
	return false
}

// resplit gives up symbols that have become too large for the path, and sends
// what is in them anew in smaller ones.
func (c *Conn) resplit() {
	for id := c.symbols.first; id < c.symbols.end(); id++ {
		s := c.symbols.at(id)
		if s == nil || s.state >= arrived || len(s.data) <= c.symbolSize(c.packet) {
			continue // nil: given up with one before it
		}
		var i wire.Item
		for b := s.data; len(b) > 0; {
			rest, err := wire.NextItem(b, &i)
			if err != nil {
				break
			}
			b = rest
			if i.Kind != wire.ItemFragment && i.Kind != wire.ItemFinish {
				i.Data = nil
				c.out.items = append(c.out.items, i)
			}
		}
		for _, p := range s.parts {
			m := p.of
			switch {
			case m.over():
			case m.finish:
				m.whole = false
				c.requeue(m)
			default:
				m.again = append(m.again, p.span)
				c.requeue(m)
			}
		}
		c.voidSymbol(id)
	}
}

// requeue puts a message that had been sent at the head of its queue.
func (c *Conn) requeue(m *outMessage) {
	q := &c.out.queues[min(m.Priority, HighestPriority)]
	if slices.Contains(*q, m) {
		return
	}
	*q = slices.Insert(*q, 0, m)
	c.out.count++
}

// repairOf combines symbols from the first missing one on, at most code.MaxWindow.
func (c *Conn) repairOf(buf []byte, seed uint16) (r code.Repair, ok bool) {
	first, last := uint64(0), uint64(0)
	found := false
	for id := c.symbols.first; id < c.symbols.end(); id++ {
		s := c.symbols.at(id)
		if s.state >= arrived || s.sends == 0 {
			continue
		}
		if !found {
			first, found = id, true
		}
		if id-first >= code.MaxWindow {
			break
		}
		last = id
	}
	if !found {
		return r, false
	}
	r = code.Repair{First: first, Count: int(last-first) + 1, Seed: seed}
	c.scratch = c.scratch[:0]
	for id := first; id <= last; id++ {
		s := c.symbols.at(id)
		if s.state == void || s.sends == 0 {
			if r.Skip == nil {
				r.Skip = make([]byte, (r.Count+7)/8)
			}
			r.Skip[(id-first)/8] |= 1 << ((id - first) % 8)
			continue
		}
		c.scratch = append(c.scratch, code.Symbol{ID: id, Data: s.data})
	}
	r.Data = code.Encode(buf, seed, c.scratch)
	return r, true
}
