package core

import (
	"math"
	"time"

	"linktrial/protocols/lttcp/wire"
)

// unwrap is the number near reference whose low 32 bits are known.
func unwrap(reference int64, low uint32) int64 {
	return reference + int64(int32(low-uint32(reference)))
}

// onAck takes in what the receiver says. What it cannot say truthfully changes nothing.
func (s *sender) onAck(now time.Duration, p *wire.Packet) {
	end := s.cut
	if s.fin != 0 {
		end++
	}
	largest, received := unwrap(s.largest, p.Largest), unwrap(s.received, p.Received)
	next, limit := unwrap(s.una, p.Next), unwrap(s.limit, p.Limit)
	if largest < 0 || largest >= s.number || received < 0 || received > largest || next > end || limit < s.limit-(1<<30) {
		return
	}
	for _, r := range p.Ranges() {
		from, to := unwrap(s.una, r.From), unwrap(s.una, r.To)
		if from >= to || to > end {
			return
		}
	}
	s.limit = max(s.limit, limit)
	fresh := largest >= s.largest && received >= s.received
	if fresh {
		s.delivered(now, largest, received, p.Flags&wire.FlagEcho != 0)
	}
	s.arrived(now, next, p)
	if !fresh {
		return
	}
	s.reduce = s.reduce && s.largest <= s.window.reduced
	if p.Flags&wire.FlagCongestion != 0 && s.window.reduce(s.largest, s.number-1, s.mss) {
		s.count.reductions++
		s.reduce = true
	}
	s.lost()
	s.settle(now)
}

// delivered follows packets, of any kind, out of the network.
func (s *sender) delivered(now time.Duration, largest, received int64, echo bool) {
	left, packets := 0, largest-s.largest
	for n := s.largest + 1; n <= largest; n++ {
		t := s.log[n-s.logged]
		left += t.bytes
		if n >= s.pipeFrom {
			s.pipe -= t.bytes
		}
		if n == largest && echo {
			s.clock.sample(now - t.at)
		}
	}
	if packets > 0 {
		arrived := min(max(received-s.received, 0), packets)
		s.window.grow(int(int64(left)*arrived/packets), s.mss)
		s.log = s.log[largest+1-s.logged:]
		s.logged = largest + 1
	}
	s.largest, s.received = largest, received
	s.measure()
}

// measure takes a sample of the erasure rate once a window, and averages.
func (s *sender) measure() {
	if s.largest < s.windowEnd {
		return
	}
	if n := s.largest - s.begunAt; n > 0 {
		share := 1 - float64(s.received-s.begunWith)/float64(n)
		s.erasures = 0.5*min(max(share, 0), 1) + 0.5*s.erasures // equation 1 of lttcp-2006
	}
	s.begunAt, s.begunWith = s.largest, s.received
	s.windowEnd = s.number - 1
	if s.windowEnd <= s.largest {
		s.windowEnd = s.largest + 1
	}
}

// arrived marks segments that the receiver has.
func (s *sender) arrived(now time.Duration, next int64, p *wire.Packet) {
	advanced := next > s.una
	if s.fin != 0 && next == s.cut+1 {
		s.finDone = true
	}
	s.una = max(s.una, next)
	for _, b := range s.blocks {
		s.mark(b, 0, s.una)
		for _, r := range p.Ranges() {
			s.mark(b, unwrap(s.una, r.From), unwrap(s.una, r.To))
		}
		for _, g := range p.Blocks() {
			if unwrap(s.una, g.Start) == b.start {
				b.got = max(b.got, int(g.Got))
			}
		}
		if b.closed && max(b.got, b.arrived) >= len(b.segments) {
			b.complete = true
		}
	}
	for len(s.blocks) > 0 && s.blocks[0].closed && s.blocks[0].end() <= s.una {
		s.blocks = s.blocks[1:]
	}
	if !advanced {
		return
	}
	s.clock.backoff = 0
	if s.outstanding() {
		s.timeoutAt = now + s.clock.timeout()
		return
	}
	// What is still under way is FEC that nobody needs: its loss would not be noticed.
	s.timeoutAt = 0
	s.pipe, s.pipeFrom = 0, s.number
}

// mark notes that a part of the stream has arrived.
func (s *sender) mark(b *block, from, to int64) {
	if to <= b.start || from >= b.end() {
		return
	}
	for i := range b.segments {
		g := &b.segments[i]
		at := b.start + int64(i*b.size)
		if !g.arrived && from <= at && at+int64(len(g.data)) <= to {
			g.arrived, g.pending = true, false
			b.arrived++
		}
	}
}

// left reports whether a packet has left the network: it arrived or was lost.
func (s *sender) left(number int64) bool { return number <= s.largest-duplicates }

// lost finds what was lost, and plans its repair. A segment of a block with
// proactive FEC is not sent again before the whole block has left the network,
// for the FEC may repair it.
func (s *sender) lost() {
	any := int64(0)
	for _, b := range s.blocks {
		if b.complete {
			b.reactive = 0
			continue
		}
		for i := range b.segments {
			g := &b.segments[i]
			if g.arrived || g.again || g.pending || b.phase != phaseAhead || !s.left(g.number) {
				continue
			}
			any = max(any, g.number)
			if !b.guarded && (b.closed || b.ahead == 0) {
				g.pending = true
				s.count.losses++
			}
		}
		s.advance(b)
		if b.reactive > 0 {
			b.reactive = min(b.reactive, s.needed(b.missing()))
		}
	}
	if s.config.LossResponse && any > s.window.reduced && s.window.reduce(any, s.number-1, s.mss) {
		s.count.reductions++
	}
}

// advance begins the next phase of a block once the packets of the last one have
// left the network and were not enough.
func (s *sender) advance(b *block) {
	switch b.phase {
	case phaseAhead:
		if !b.sentAhead() || !s.left(b.last) {
			return
		}
		b.phase = phaseRequest
		under := s.underway(b)
		if b.guarded && s.config.NoReactive {
			s.again(b, s.needed(b.missing())-under)
		}
		if !s.config.NoReactive {
			b.reactive = s.stock(b, s.needed(b.missing())-under)
		}
	case phaseRequest:
		if b.reactive > 0 || s.underway(b) > 0 {
			return
		}
		b.phase = phaseAgain
		s.again(b, s.needed(b.missing()))
	}
}

// needed is how many packets are sent so that, with the estimated share of
// erasures, so many arrive.
func (s *sender) needed(missing int) int {
	return int(math.Ceil(float64(missing)/(1-min(s.erasures, mostErasures)) - 1e-9))
}

// underway is how many repairs of a block are under way, or about to be.
func (s *sender) underway(b *block) (n int) {
	for _, number := range b.repairs {
		if !s.left(number) {
			n++
		}
	}
	for i := range b.segments {
		if b.segments[i].pending {
			n++
		}
	}
	return n
}

// stock is how many of so many packets a block's code still has.
func (s *sender) stock(b *block, want int) int {
	return max(min(want, wire.MaxPackets-len(b.segments)-b.sent), 0)
}

// again has up to so many segments sent again that were not yet since the last timeout.
func (s *sender) again(b *block, want int) {
	for i := range b.segments {
		if g := &b.segments[i]; want > 0 && !g.arrived && !g.again && !g.pending {
			g.pending = true
			want--
			s.count.losses++
		}
	}
}
