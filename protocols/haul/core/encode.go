package core

import (
	"encoding/binary"
	"slices"

	"linktrial/protocols/haul/code"
	"linktrial/protocols/haul/wire"
)

// symbolSize is the largest source symbol that can be sent next: a repair of it
// fits into a packet, with the length that the code puts before it.
func (s *sender) symbolSize(packet int) int {
	var id [binary.MaxVarintLen64]byte
	head := 2 + binary.PutUvarint(id[:], s.symbols.end()+code.MaxWindow) + 2
	return packet - wire.DataHeader - s.overhead - head
}

// fill builds the next symbol, or an unreliable body, of at most room bytes. It
// returns nil where nothing may be sent now.
func (s *sender) fill(room int, reliable bool) (data []byte, parts []part, bytes int) {
	data = make([]byte, 0, room)
	if reliable {
		for len(s.out.items) > 0 && len(data)+32 <= room {
			data = wire.AppendItem(data, &s.out.items[0], false)
			s.out.items = slices.Delete(s.out.items, 0, 1)
		}
	}
	for room-len(data) > 24 {
		m := s.out.head(func(m *outMessage) bool {
			return m.Class.Reliable() == reliable && s.sendable(m)
		})
		if m == nil {
			break
		}
		if m.finish {
			n := s.out.numbering(m.Stream, m.Class)
			data = wire.AppendItem(data, &wire.Item{Kind: wire.ItemFinish, Class: m.Class, Stream: uint64(m.Stream), Number: n.next}, false)
			m.whole, m.numbered = true, true
			parts = append(parts, part{m, span{}})
			continue
		}
		var p part
		data, p = s.fragment(data, room, m)
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
func (s *sender) fragment(data []byte, room int, m *outMessage) ([]byte, part) {
	n := s.out.numbering(m.Stream, m.Class)
	if !m.numbered {
		m.number = n.next
	}
	sym := span{m.sent, len(m.Data)}
	repeat := len(m.again) > 0
	if repeat {
		sym = m.again[0]
	}
	item := wire.Item{Class: m.Class, Stream: uint64(m.Stream), Number: m.number, Offset: uint64(sym.from), Tag: uint64(m.Tag)}
	most := room - len(data) - wire.HeadSize(&item)
	end := sym.to-sym.from >= most-2 // no room for another item behind it
	if !end {
		most -= 2 // its length
	}
	sym.to = min(sym.to, sym.from+most)
	if sym.to < sym.from || sym.to == sym.from && sym.to < len(m.Data) {
		return data, part{}
	}
	item.Last = sym.to == len(m.Data)
	item.Data = m.Data[sym.from:sym.to]
	data = wire.AppendItem(data, &item, end && room-len(data) <= wire.HeadSize(&item)+len(item.Data)+2)
	if !m.numbered {
		m.numbered = true
		n.next++
		n.waiting--
		if m.Class.Reliable() {
			s.sent += messageCost
			s.begun += uint64(len(m.Data))
		}
	}
	switch {
	case repeat && sym.to < m.again[0].to:
		m.again[0].from = sym.to
	case repeat:
		m.again = m.again[1:]
	default:
		m.sent = sym.to
		m.whole = item.Last
		s.out.bytes -= sym.to - sym.from
		if m.Class.Reliable() {
			s.sent += uint64(sym.to - sym.from)
			s.begun -= uint64(sym.to - sym.from)
		}
	}
	return data, part{m, sym}
}

// newSymbol makes the next source symbol, and reports whether there was anything for it.
func (s *sender) newSymbol() bool {
	room := s.symbolSize(s.next())
	if s.requestsDelay(s.ackPatience()) {
		room -= requestRoom
	}
	data, parts, bytes := s.fill(room, true)
	s.turn++
	if data == nil {
		return false
	}
	for _, p := range parts {
		p.of.flying++
	}
	s.symbols.push(symbol{data: data, parts: parts, bytes: bytes, state: missed})
	return true
}

// repairOf combines symbols from the first missing one on, at most code.MaxWindow.
func (s *sender) repairOf(buf []byte, seed uint16) (r code.Repair, ok bool) {
	first, last := uint64(0), uint64(0)
	found := false
	for id := s.symbols.first; id < s.symbols.end(); id++ {
		sym := s.symbols.at(id)
		if sym.state >= arrived || sym.sends == 0 {
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
	s.scratch = s.scratch[:0]
	for id := first; id <= last; id++ {
		sym := s.symbols.at(id)
		if sym.state == void || sym.sends == 0 {
			if r.Skip == nil {
				r.Skip = make([]byte, (r.Count+7)/8)
			}
			r.Skip[(id-first)/8] |= 1 << ((id - first) % 8)
			continue
		}
		s.scratch = append(s.scratch, code.Symbol{ID: id, Data: sym.data})
	}
	r.Data = code.Encode(buf, seed, s.scratch)
	return r, true
}

// requeue puts a message that had been sent at the head of its queue.
func (s *sender) requeue(m *outMessage) {
	q := &s.out.queues[min(m.Priority, HighestPriority)]
	if slices.Contains(*q, m) {
		return
	}
	*q = slices.Insert(*q, 0, m)
	s.out.count++
}

// resplit gives up symbols that have become too large for the path, and sends
// what is in them anew in smaller ones.
func (s *sender) resplit() {
	for id := s.symbols.first; id < s.symbols.end(); id++ {
		sym := s.symbols.at(id)
		if sym == nil || sym.state >= arrived || len(sym.data) <= s.symbolSize(s.packet) {
			continue // nil: given up with one before it
		}
		var i wire.Item
		for b := sym.data; len(b) > 0; {
			rest, err := wire.NextItem(b, &i)
			if err != nil {
				break
			}
			b = rest
			if i.Kind != wire.ItemFragment && i.Kind != wire.ItemFinish {
				i.Data = nil
				s.out.items = append(s.out.items, i)
			}
		}
		for _, p := range sym.parts {
			m := p.of
			switch {
			case m.over():
			case m.finish:
				m.whole = false
				s.requeue(m)
			default:
				m.again = append(m.again, p.span)
				s.requeue(m)
			}
		}
		s.voidSymbol(id)
	}
}

// shrink makes packets smaller, as the path's MTU has become.
func (s *sender) shrink(to int) {
	to = max(to, MinPacket)
	s.sizes = sizes{packet: to, most: to}
	s.lostLarge, s.smallArrived = 0, 0
	s.stats.Shrunk++
	s.unreliable = nil // it may be too large now, and is never repeated
	s.resplit()
}

// resize makes another size the usual one.
func (s *sender) resize(to int) {
	was := s.packet
	s.sizes = sizes{packet: max(to, smallestPacket), most: s.most, turn: s.turn}
	s.lostLarge, s.smallArrived = 0, 0
	s.stats.Resized++
	s.rate.size = float64(s.packet + headers)
	if s.packet < was {
		s.resplit()
	}
}

// sizeSeen notes what became of a packet with a symbol.
func (s *sender) sizeSeen(p *sentPacket, lost bool) {
	if s.observe(int(p.size)-headers, lost) {
		s.compareSizes()
	}
}

// repairUnheard notes a repair of which nobody knows what became; while nothing
// of its size has ever arrived, it has not either.
func (s *sender) repairUnheard(p *sentPacket) {
	if s.never >= 0 && int(p.size)-headers > s.packet*3/4 {
		s.never++
		s.compareSizes()
	}
}

func (s *sender) compareSizes() {
	if to := s.compare(s.smallArrived > 0); to > 0 {
		s.resize(to)
	}
}
