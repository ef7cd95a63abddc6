package core

import (
	"time"

	"linktrial/protocols/haul/wire"
)

// sendable reports whether the other end's buffer has room for more of a
// message. What is sent again has been counted already. A message is begun when
// there is room for all of it, besides that for the rest of those begun before:
// or else parts of messages, and what waits in order behind them, could fill the
// buffer so that none is ever complete.
func (s *sender) sendable(m *outMessage) bool {
	if m.finish {
		return s.out.numbering(m.Stream, m.Class).waiting == 0
	}
	return !m.Class.Reliable() || m.numbered || s.sent+s.begun+m.cost() <= s.peerCredit
}

// canFill reports whether there is anything new to send now.
func (s *sender) canFill() bool {
	return len(s.out.items) > 0 || s.out.head(s.sendable) != nil
}

// nothingQueued reports whether nothing waits that has not been sent.
func (s *sender) nothingQueued() bool {
	return !s.writerWaits && s.out.bytes == 0 && s.unreliable == nil && len(s.out.items) == 0 && !s.canFill()
}

// blocked reports whether the other end's buffer keeps new data back.
func (s *sender) blocked() bool {
	return s.out.count > 0 && !s.canFill()
}

// finishMessage notes what became of a message.
func (s *sender) finishMessage(m *outMessage, what Outcome) {
	if m.over() {
		return
	}
	m.outcome = what
	s.out.forget(m)
	switch what {
	case Delivered:
		s.stats.MessagesDelivered++
	case Expired:
		s.stats.MessagesExpired++
	case Cancelled:
		s.stats.MessagesCancelled++
	}
	m.Data = nil
}

// settleSymbol takes a symbol out of what has to arrive.
func (s *sender) settleSymbol(id uint64, state symbolState) {
	sym := s.symbols.at(id)
	if sym == nil || sym.state >= arrived {
		return
	}
	if sym.state == missed {
		s.missing--
	}
	sym.state = state
	s.open--
	if state == arrived {
		s.stats.BytesDelivered += uint64(sym.bytes)
	}
	for _, p := range sym.parts {
		p.of.flying--
		if p.of.flying == 0 && p.of.whole && len(p.of.again) == 0 && state == arrived {
			s.finishMessage(p.of, Delivered)
		}
	}
	sym.parts = nil
	for s.symbols.len() > 0 && s.symbols.at(s.symbols.first).state >= arrived {
		s.symbols.pop()
	}
	s.firstMissed = max(s.firstMissed, s.symbols.first)
}

// voidSymbol gives a symbol up and tells the other end.
func (s *sender) voidSymbol(id uint64) {
	if n := len(s.out.items); n > 0 && s.out.items[n-1].Kind == wire.ItemVoid && s.out.items[n-1].Number+s.out.items[n-1].Offset == id && s.out.items[n-1].Offset < wire.MaxVoid {
		s.out.items[n-1].Offset++
	} else {
		s.out.items = append(s.out.items, wire.Item{Kind: wire.ItemVoid, Number: id, Offset: 1})
	}
	s.settleSymbol(id, void)
}

// voidOf gives up the symbols that carry nothing but messages that are over.
func (s *sender) voidOf(m *outMessage) {
	for id := s.symbols.first; id < s.symbols.end(); id++ {
		sym := s.symbols.at(id)
		if sym == nil || sym.state >= arrived || len(sym.parts) == 0 || sym.sends == 0 {
			continue // nil: given up with one before it
		}
		mine, dead := false, true
		for _, p := range sym.parts {
			mine = mine || p.of == m
			dead = dead && p.of.over()
		}
		if mine && dead && !sym.control() {
			s.voidSymbol(id)
		}
	}
}

// giveUp ends a message before its time. What of it is in symbols is declared
// void where nothing else is in them, so that nobody waits for it.
func (s *sender) giveUp(m *outMessage, why Outcome) {
	if m.over() {
		return
	}
	if !m.whole {
		s.out.bytes -= len(m.Data) - m.sent
		if m.numbered && m.Class.Reliable() {
			s.begun -= uint64(len(m.Data) - m.sent)
		}
	}
	s.finishMessage(m, why)
	if !m.numbered {
		s.out.numbering(m.Stream, m.Class).waiting--
		return
	}
	if m.Class.Reliable() {
		s.out.items = append(s.out.items, wire.Item{Kind: wire.ItemCancel, Class: m.Class, Stream: uint64(m.Stream), Number: m.number, Offset: uint64(m.sent)})
		s.voidOf(m)
	}
}

// expire gives up messages whose deadline has passed.
func (s *sender) expire(now time.Duration) {
	s.eachTimed(func(m *outMessage) {
		if at := m.expiresAt(); at > 0 && now >= at {
			s.giveUp(m, Expired)
		}
	})
}

// nextExpiry is the earliest deadline of a message, 0 where there is none.
func (s *sender) nextExpiry() (next time.Duration) {
	s.eachTimed(func(m *outMessage) { next = earliest(next, m.expiresAt()) })
	return next
}

// eachTimed calls do with every message that may have a deadline; with some twice.
func (s *sender) eachTimed(do func(*outMessage)) {
	if s.out.timed == 0 {
		return
	}
	for p := range s.out.queues {
		for _, m := range s.out.queues[p] {
			do(m)
		}
	}
	for n := s.symbols.first; n < s.symbols.end(); n++ {
		sym := s.symbols.at(n)
		if sym == nil {
			continue // given up with a message before
		}
		for _, part := range sym.parts {
			do(part.of)
		}
	}
}
