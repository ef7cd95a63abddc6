package search

import (
	"math"
	"time"

	"linktrial/protocols/contract"
	"linktrial/protocols/probe/wire"
)

// Take takes what has arrived of a step, which was sent at a rate in bit/s, and how long
// after its last packet the report came. Packets is how many were sent: fewer than meant
// where the receiving end warned.
func (s *Search) Take(x Step, packets int, rate float64, r *wire.Report, waited time.Duration) {
	s.steps++
	bits := s.bits(x.Payload)
	s.most = max(s.most, r.Received*int64(bits)/8)
	// A report waits for what is in the queue, so the shortest is the way's own.
	if s.round == 0 || waited < s.round {
		s.round = waited
	}
	measured := s.measured(packets, bits, r)
	if x.Rate == 0 {
		if s.estimate = min(measured, s.bounds.Highest); s.estimate == 0 && s.steps >= 5 {
			s.estimate = 16e3 // too many were lost to tell
		}
		return
	}
	s.paced(rate >= 0.97*x.Rate, rate)
	if s.tooMuch(packets, bits, rate, r) {
		s.above(x, packets, rate, measured)
		return
	}
	if s.sent, s.lost = s.sent+float64(packets), s.lost+float64(packets)-float64(r.Received); rate > s.low {
		s.low, s.lowPackets = rate, packets
	}
	if s.high > 0 && s.low >= s.high { // the way has changed
		s.high = 0
	}
	if rate >= s.estimate {
		s.estimate = max(s.estimate, rate)
	}
	if s.low >= 0.97*s.bounds.Highest {
		s.end = contract.CapacityHighest
	}
}

// paced notes whether a step was sent as fast as it was meant. A sender that was not, several
// times, has no higher rate.
func (s *Search) paced(kept bool, rate float64) {
	if kept {
		s.slow, s.fastest = 0, 0
		return
	}
	s.slow, s.fastest = s.slow+1, max(s.fastest, rate)
	if s.slow >= slowSteps {
		s.bounds.Highest = min(s.bounds.Highest, s.fastest)
	}
}

// measured is the rate at the bottleneck by the arrivals of packets that waited there. Where
// no queue has dropped any, all between the first and the last have passed it or been lost on
// the way, which may make room for others; else those with consecutive numbers tell.
func (s *Search) measured(packets int, bits float64, r *wire.Report) float64 {
	switch {
	case r.Numbers > 0 && r.SpanNS > 0 && !s.dropped(float64(packets), r):
		return float64(r.Numbers) * bits / (float64(r.SpanNS) / 1e9)
	case r.Pairs > 0 && r.PairNS > 0:
		return float64(r.Pairs) * bits / (float64(r.PairNS) / 1e9)
	}
	return 0
}

// above notes a rate that was too much.
func (s *Search) above(x Step, packets int, rate, measured float64) {
	s.high, s.highBytes = rate, x.Payload
	if measured > 0 && measured < rate {
		s.estimate, s.bottleneck = measured, measured
	}
	s.estimate = min(s.estimate, rate)
	// The way has changed; or the low rate had too few packets to tell, as where a relay
	// has the medium in turn with the sender and its queue has not begun to fill.
	if s.low >= s.high || s.lowPackets < packets && s.estimate < s.low*(1-2*near) {
		s.low = 0
	}
}

// tooMuch reports whether packets waited, or a queue dropped them.
func (s *Search) tooMuch(packets int, bits, rate float64, r *wire.Report) bool {
	n := float64(packets)
	if r.Received < 2 {
		return packets >= roughPackets/2
	}
	// Where a relay shares the medium, delays differ by the time of a packet.
	least := bits / rate * 1e9 / 5
	if packets < finePackets/2 {
		least *= 5
	}
	if grown := float64(r.GrowthNS); grown > sigmas*float64(r.ErrorNS) && grown > slope*float64(r.SpanNS) && grown > max(least, 1e5) {
		return true
	}
	return s.dropped(n, r) || float64(r.ExcessNS) > waiting*bits/rate*1e9 && s.lostMore(n, r, 1)
}

// dropped reports whether more were lost than before. How many are in any case is known
// once enough were sent.
func (s *Search) dropped(n float64, r *wire.Report) bool { return s.lostMore(n, r, sigmas) }

func (s *Search) lostMore(n float64, r *wire.Report, deviations float64) bool {
	// Before anything was sent, a tenth is lost for all that is known.
	const prior = 8
	known := s.sent + prior
	usual := (s.lost + lossMargin*prior) / known
	lost := (n - float64(r.Received)) / n
	p := max(usual, 0.05)
	return lost > usual+lossMargin+deviations*math.Sqrt(p*(1-p)*(1/n+1/known))
}
