package core

import "time"

// asksNow reports whether the next packet asks for an acknowledgement at once.
func (s *sender) asksNow(what content) bool {
	if s.sinceAckRequest+1 >= s.askEvery() || s.packets.end() < 3 || what == contentPing || s.ptoCount > 0 {
		return true
	}
	return what == contentRepair || s.nothingQueued()
}

// waiting reports whether content waits only for the time to send it.
func (s *sender) waiting() bool {
	if s.amplificationLimited {
		return false
	}
	if s.windowFull() && s.probes == 0 {
		return false
	}
	return s.ping || s.probes > 0 && s.open > 0 || s.missing > 0 && !s.nothingQueued() || s.unreliable != nil || s.canFill() || s.wantsRepair()
}

// choose decides what the next packet carries.
func (s *sender) choose(now time.Duration) (content, uint64) {
	if s.amplificationLimited {
		return contentNone, 0
	}
	if now < s.nextSend {
		s.pacingHeld = s.pacingHeld || s.waiting()
		return contentNone, 0
	}
	s.observeWakeUp(now)
	switch {
	case s.windowFull() && s.probes == 0:
		return contentNone, 0
	case s.ptoCount >= lostAfter && s.windowFull() && (s.rate.packetTime() > s.probePause()/8 || s.stats.LargeArrived == 0 || s.ptoCount%2 == 0), s.smallProbe && s.probes > 0:
		return contentPing, 0 // small, in case that it is the size that does not get through
	}
	fills := s.canFill()
	if s.missing > 0 && (!s.nothingQueued() || s.config.NoCoding) {
		if id, ok := s.missedSymbol(); ok {
			return contentSymbol, id
		}
	}
	if s.unreliable != nil {
		return contentUnreliable, 0
	}
	if fills {
		if what, id := s.newContent(); what != contentNone {
			return what, id
		}
	}
	if s.wantsRepair() {
		if s.missing > 0 && (s.repairs == 0 || s.missing == s.open) {
			if id, ok := s.missedSymbol(); ok {
				return contentSymbol, id
			}
		}
		return contentRepair, 0
	}
	if s.ping || s.probes > 0 && s.open > 0 {
		return contentPing, 0
	}
	return contentNone, 0
}

// newContent makes a symbol, or an unreliable body, of what is first in the queue.
func (s *sender) newContent() (content, uint64) {
	m := s.out.head(s.sendable)
	if m != nil && !m.Class.Reliable() && len(s.out.items) == 0 {
		data, parts, _ := s.fill(s.symbolSize(s.packet), false)
		if data != nil {
			s.unreliable = data
			for _, p := range parts {
				if p.of.whole {
					s.finishMessage(p.of, Sent)
				}
			}
			return contentUnreliable, 0
		}
	}
	if s.newSymbol() {
		s.open++
		s.missing++
		return contentSymbol, s.symbols.end() - 1
	}
	return contentNone, 0
}

// missedSymbol finds the first symbol that is known to be lost.
func (s *sender) missedSymbol() (uint64, bool) {
	for id := max(s.firstMissed, s.symbols.first); id < s.symbols.end(); id++ {
		if s.symbols.at(id).state == missed {
			s.firstMissed = id
			return id, true
		}
	}
	return 0, false
}

// wantsRepair decides whether one more packet ahead of any news is worth its
// airtime: it is while what it saves, a round trip times the probability that
// what is under way does not suffice, is more.
func (s *sender) wantsRepair() bool {
	if s.open == 0 || !s.nothingQueued() && (!s.blocked() || s.probes == 0) {
		return false
	}
	need := s.open - s.peerRank
	if need <= 0 {
		need = 1
	}
	share := s.loss.share()
	if s.config.NoCoding {
		return s.missing > 0
	}
	if s.useful >= need && s.useful > 3*need+12 {
		return false
	}
	if s.useful < need {
		return true
	}
	if s.halfOpen && s.ptoCount > 0 {
		return false
	}
	fail := shortfall(s.useful, need, share, s.loss.burst())
	wait := max(s.rate.srtt, time.Millisecond)
	cost := s.rate.packetTime()
	if cost == 0 {
		cost = max(wait/10, seconds(s.peerByteTime*s.rate.size)/2)
	}
	if last := s.symbols.at(s.symbols.end() - 1); last != nil && s.symbols.len() == 1 {
		cost = time.Duration(float64(cost) * float64(len(last.data)+64) / s.rate.size)
	}
	// What goes beyond the number that arrives on average is the less worth it the more it is.
	beyond := max(float64(s.useful)-float64(need)/(1-share), 0)
	weight := tailWeight + 2*beyond*float64(cost)/float64(wait)
	return fail*float64(wait) > weight*float64(cost)
}

// packetSent notes a packet of n bytes of UDP payload that goes out now.
func (s *sender) packetSent(now time.Duration, n int, p sentPacket) {
	number := s.packets.end()
	p.at, p.size = now, int32(n+headers)
	s.bytesSent += uint64(p.size)
	p.bytes = s.bytesSent
	p.large = n > s.packet*9/10
	s.packets.push(p)
	for s.packets.len() > 0 && s.settledPacket(s.packets.first) {
		s.packets.pop()
	}
	if p.ackEliciting {
		s.inFlight += int(p.size)
		s.lastAckEliciting, s.lastAckElicitingAt = number+1, now
		s.sinceAckRequest++
	}
	if p.useful {
		s.useful++
		if p.repair {
			s.repairs++
		}
	}
	s.stats.PacketsSent++
	s.stats.BytesSent += uint64(p.size)
}

// sentContent notes what went out with the newest packet.
func (s *sender) sentContent(now time.Duration, what content, id uint64, n int) {
	if n == 0 || what == contentNone {
		return
	}
	if s.probes > 0 {
		s.probes--
	}
	s.ping = false
	if what == contentPing {
		s.smallProbe = false
	}
	switch what {
	case contentSymbol:
		sym := s.symbols.at(id)
		if sym.sends > 0 {
			s.stats.Retransmits++
			s.stats.BytesAgain += uint64(sym.bytes)
		}
		sym.sends++
		sym.last = s.packets.end() - 1
		if sym.state == missed {
			sym.state = flying
			s.missing--
		}
	case contentRepair:
		s.stats.Repairs++
	case contentUnreliable:
		s.unreliable = nil
	}
	if rate := s.rate.pacing(); rate > 0 {
		s.nextSend = max(s.nextSend, now-s.burst()) + seconds(float64(n+headers)/rate)
	}
}

// settledPacket reports whether no acknowledgement will tell more of a packet.
func (s *sender) settledPacket(number uint64) bool {
	p := s.packets.at(number)
	if !p.ackEliciting {
		return true
	}
	if number >= s.largestAcked {
		return false
	}
	if p.symbol == 0 {
		return true
	}
	sym := s.symbols.at(p.symbol - 1)
	return sym == nil || sym.state >= arrived || sym.last != number
}
