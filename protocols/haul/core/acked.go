package core

import (
	"time"

	"linktrial/protocols/haul/wire"
)

// handleAck takes in an acknowledgement.
func (s *sender) handleAck(now time.Duration, a *wire.Ack) {
	if a.Largest >= s.packets.end() || a.Next > s.symbols.end() {
		s.stats.Dropped.Unexpected++ // of packets that were never sent
		return
	}
	s.stats.AcksReceived++
	s.peerCredit = max(s.peerCredit, a.Credit)
	newest := a.Largest+1 > s.largestAcked
	s.arrivals(a)
	if newest {
		s.advance(now, a)
	}
	s.peerRank = int(min(a.Rank, 1<<20))
	s.timeoutFrom, s.lastAckAt, s.silence = now, now, 0
	if s.ptoCount >= lostAfter {
		s.events = append(s.events, LinkBack)
	}
	s.ptoCount, s.probes, s.smallProbe = 0, 0, false
}

// arrivals settles the symbols that the acknowledgement names.
func (s *sender) arrivals(a *wire.Ack) {
	for id := s.symbols.first; id < a.Next; id++ {
		s.settleSymbol(id, arrived)
	}
	id := a.Next
	for _, r := range a.Ranges {
		id += r.Missing
		for range r.Arrived {
			if id >= s.symbols.end() {
				return
			}
			s.settleSymbol(id, arrived)
			id++
		}
	}
}

// advance takes in that packets up to a new one have arrived or are lost.
func (s *sender) advance(now time.Duration, a *wire.Ack) {
	total := a.Largest + 1 - s.largestAcked
	got := min(a.Received-min(a.Received, s.packetsAcked), total)
	s.loss.known()
	s.loss.observe(total, total-got, a.Bursts-min(a.Bursts, s.burstsAcked))
	s.stats.PacketsLost += total - got
	if p := s.packets.at(a.Largest); p != nil {
		if took := now - p.at - time.Duration(min(a.Delay, 1<<40))*time.Microsecond; took > 0 {
			s.rate.roundTrip(took)
		}
		if p.large {
			s.lostLarge, s.smallArrived = 0, 0
			s.stats.LargeArrived++
		} else {
			s.smallArrived++
		}
		s.rate.arrived(now, a.At, point{number: a.Largest, sent: p.at, bytes: p.bytes, got: a.Received}, a.CE)
	}
	for n := max(s.largestAcked, s.packets.first); n <= a.Largest; n++ {
		p := s.packets.at(n)
		if p.ackEliciting {
			s.inFlight -= int(p.size)
		}
		if p.useful && n >= s.presumedLost {
			s.useful--
			if p.repair {
				s.repairs--
			}
		}
	}
	s.largestAcked, s.packetsAcked, s.burstsAcked = a.Largest+1, a.Received, a.Bursts
	s.missedUpTo(a.Largest)
	if s.lostLarge >= largeLost && s.smallArrived >= 2 {
		s.shrink(s.packet * 3 / 4)
	}
}

// missedUpTo declares lost what was sent so long before an arrived packet that
// it would have arrived as well.
func (s *sender) missedUpTo(largest uint64) {
	for s.packets.len() > 0 && s.packets.first+reordering <= largest {
		p := *s.packets.at(s.packets.first)
		number := s.packets.first
		s.packets.pop()
		if p.symbol == 0 {
			if p.repair {
				s.repairUnheard(&p)
			}
			continue
		}
		sym := s.symbols.at(p.symbol - 1)
		if sym == nil || sym.state != flying || sym.last != number {
			if sym == nil || sym.last == number {
				s.sizeSeen(&p, false)
			}
			continue
		}
		s.sizeSeen(&p, true)
		// It may have been given up, because packets have become smaller; what sym
		// points to is then no symbol any more.
		if sym = s.symbols.at(p.symbol - 1); sym == nil || sym.state != flying {
			continue
		}
		sym.state = missed
		s.missing++
		s.firstMissed = min(s.firstMissed, p.symbol-1)
		if p.large {
			s.lostLarge++
		}
		if size := int(p.size) - headers; sym.sends >= largeLost && size > MinPacket && size <= s.packet {
			// It never gets through although others do: too large for the path,
			// even where it is not as large as packets may be.
			s.shrink(size * 3 / 4)
		}
	}
}
