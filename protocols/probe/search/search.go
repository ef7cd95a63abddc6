// Package search finds the capacity of a way by UDP packets, as RFC 9097 defines it: it
// says which rate is tried next, by what arrived at those before. Comes in: reports of
// the receiving end. Goes out: steps, and what was found. Pure.
//
// The first step is a few packets at once. Their arrivals tell about how fast the
// bottleneck is. Then rates double until the delay grows (a queue fills), and are
// tried between the highest without and the lowest with growth, there first beside the rate
// at the bottleneck, by the distance of arrivals. RFC 9097 lets the method open
// (section 8.1); that of RFC 9946 (udpst, algorithms B and C) changes the rate all the time
// by tables of rates from 0.5 Mbit/s on, which a way of 16 kbit/s does not have.
//
// What can wait in a queue because of a step is bounded: a step sends at most [growBytes]
// times what arrived of those before, and ends when the delay has grown by two seconds.
package search

import (
	"math"
	"time"

	"linktrial/protocols/contract"
	"linktrial/protocols/probe/wire"
)

const (
	burstPackets = 5
	burstBytes   = 100 // of payload
	growBytes    = 8

	// packetTime is how long a packet takes at most at the rate tried: a slower way has
	// smaller packets, so that there are enough of them.
	packetTime = 100 * time.Millisecond
	minPayload = 100

	roughPackets = 16
	roughTime    = 100 * time.Millisecond
	finePackets  = 100
	holdPackets  = 200
	fineTime     = time.Second
	// A fine step of very slow ways ends sooner than after finePackets.
	fineMost = 20 * time.Second

	// slope of the delay from which on packets wait: 0.2 % above the capacity.
	slope = 0.002
	// sigmas is by how many standard errors a slope is not by chance.
	sigmas = 3
	// lossMargin is how much more than before is lost where a queue drops packets.
	lossMargin = 0.1
	// waiting is how many packets' time one waited where a queue is long.
	waiting = 8
	// slowSteps are those after which the sender is known not to be faster.
	slowSteps = 3

	// near is how far beside the estimate of the bottleneck the first fine steps are, and
	// precise how near the two rates of the result are.
	near    = 0.0045
	precise = 1.01
	// firstTry is the first rate after the packets sent at once, as a share of theirs.
	firstTry = 0.7
)

// Bounds are what a search keeps to.
type Bounds struct {
	HeaderBytes int           // of IP and UDP
	Largest     int           // the most payload of a packet
	Highest     float64       // rate of IP packets in bit/s
	Time        time.Duration // of the whole probe
	Hold        time.Duration // at the rate found
}

// Step is what is sent at one rate.
type Step struct {
	Rate    float64 // of IP packets in bit/s; 0: all at once
	Payload int     // bytes of a packet
	Packets int
	Hold    bool // at the rate that was found
}

// Search is the state of a search.
type Search struct {
	bounds Bounds
	steps  int64

	low, high  float64 // the highest rate without growth and the lowest with it; 0: none
	estimate   float64 // rate at the bottleneck; 0: none
	bottleneck float64 // the estimate, of a step that was too much
	payload    int     // of fine steps; 0: not yet
	highBytes  int     // payload at the high rate
	lowPackets int     // sent at the low rate
	most       int64   // bytes that arrived of one step
	round      time.Duration
	sent, lost float64 // of steps without growth
	slow       int     // steps one after the other that the sender sent more slowly than meant
	fastest    float64 // rate of these
	again      bool    // the high rate was tried twice
	end        contract.CapacityEnded
}

// New begins a search.
func New(b Bounds) *Search { return &Search{bounds: b} }

// SetLargest bounds the payload of the packets to come.
func (s *Search) SetLargest(payload int) { s.bounds.Largest = payload }

// Estimate is about the rate at the bottleneck in bit/s; 0: nothing is known of it.
func (s *Search) Estimate() float64 { return s.estimate }

// Steps is how many steps there were.
func (s *Search) Steps() int64 { return s.steps }

// Next is the step to send, so long after the probe's start. The last one has Hold.
func (s *Search) Next(elapsed time.Duration) Step {
	if s.end != "" {
		return s.hold(elapsed)
	}
	var next Step
	switch {
	case s.estimate == 0 && s.low == 0:
		next = Step{Payload: min(burstBytes, s.bounds.Largest), Packets: burstPackets}
	case s.low == 0 || s.high == 0 || s.high > 2.5*s.low:
		next = s.rough()
	default:
		next = s.fine()
	}
	if s.end == "" && elapsed+s.takes(&next) > s.bounds.Time-s.holds()-s.round {
		s.end = contract.CapacityTime
		if s.low > 0 && s.high > 0 && s.high <= precise*s.low {
			s.end = contract.CapacityFound
		}
	}
	if s.end != "" && (s.low > 0 || s.estimate > 0) {
		return s.hold(elapsed)
	}
	s.end = ""
	return next
}

// takes is about how long a step takes with its report.
func (s *Search) takes(x *Step) time.Duration {
	return s.round + s.lasts(x.Packets, x.Payload, x.Rate)
}

func (s *Search) lasts(packets, payload int, rate float64) time.Duration {
	if rate == 0 {
		return 0
	}
	return time.Duration(float64(packets) * s.bits(payload) / rate * 1e9)
}

func (s *Search) bits(payload int) float64 { return float64(8 * (payload + s.bounds.HeaderBytes)) }

// sized is the payload of packets at a rate.
func (s *Search) sized(rate float64) int {
	return max(min(minPayload, s.bounds.Largest), min(s.bounds.Largest, int(rate*packetTime.Seconds()/8)-s.bounds.HeaderBytes))
}

// rough doubles the rate, or halves it where none was low enough.
func (s *Search) rough() Step {
	rate := 2 * s.low
	switch {
	case s.low == 0 && s.high == 0:
		rate = firstTry * s.estimate
	case s.low == 0:
		rate = min(s.high/2, firstTry*s.estimate)
	case s.high > 0:
		rate = min(rate, math.Sqrt(s.low*s.high))
	}
	rate = min(rate, s.bounds.Highest)
	payload := s.sized(rate)
	packets := max(roughPackets, int(rate*roughTime.Seconds()/s.bits(payload)))
	if most := int(growBytes * float64(max(s.most, 8*int64(burstBytes))) * 8 / s.bits(payload)); packets > most {
		packets = max(roughPackets/2, most)
	}
	return Step{Rate: rate, Payload: payload, Packets: packets}
}

// fine tries a rate between the two.
func (s *Search) fine() Step {
	if s.payload == 0 {
		s.payload = s.sized(max(s.low, s.estimate))
		if s.payload > s.highBytes { // what is too much for smaller packets may not be for larger ones
			s.high *= 2
		}
	}
	if s.high <= precise*s.low {
		if s.again {
			s.end = contract.CapacityFound
			return Step{}
		}
		// What was too much once may have been a fade, or a node that did not run.
		s.again = true
		return s.fineStep(s.high)
	}
	s.again = false
	rate := math.Sqrt(s.low * s.high)
	below, above := s.estimate*(1-near), s.estimate*(1+near)
	if s.estimate > 0 && above <= s.low*precise { // so it is about what the low rate was
		above = s.low * (1 + 2*near)
	}
	// What was sent is seldom exactly the rate that was meant.
	switch least := s.low * (1 + near/2); {
	case below > least && below < s.high:
		rate = below
	case above > least && above < s.high:
		rate = above
	}
	return s.fineStep(min(rate, s.bounds.Highest))
}

func (s *Search) fineStep(rate float64) Step {
	packets := max(finePackets, int(rate*fineTime.Seconds()/s.bits(s.payload)))
	if most := int(rate * fineMost.Seconds() / s.bits(s.payload)); packets > most {
		packets = max(roughPackets, most)
	}
	return Step{Rate: rate, Payload: s.payload, Packets: packets}
}

// holds is how long the rate found is sent.
func (s *Search) holds() time.Duration {
	rate := s.found()
	if rate == 0 {
		return s.bounds.Hold
	}
	return min(s.bounds.Time/3, max(s.bounds.Hold, s.lasts(holdPackets, s.heldPayload(), rate)))
}

// found is the highest rate without growth; where time is up before the search has come
// near, about what the bottleneck has.
func (s *Search) found() float64 {
	if s.low > 0 && s.end == contract.CapacityTime && s.bottleneck > 0 {
		return max(s.low, (1-2*near)*min(s.estimate, s.high))
	}
	if s.low > 0 {
		return s.low
	}
	if s.high > 0 {
		return min(s.high/2, firstTry*s.estimate)
	}
	return firstTry * s.estimate
}

func (s *Search) heldPayload() int {
	if s.payload > 0 {
		return s.payload
	}
	return s.sized(s.found())
}

func (s *Search) hold(elapsed time.Duration) Step {
	x := Step{Rate: s.found(), Payload: s.heldPayload(), Hold: true}
	left := min(s.holds(), max(0, s.bounds.Time-elapsed-s.round/2))
	x.Packets = max(2, int(left.Seconds()*x.Rate/s.bits(x.Payload)))
	return x
}

// Found is what the search has found, with the step that was held.
func (s *Search) Found(held Step) wire.Search {
	return wire.Search{RateBPS: int64(math.Round(held.Rate)), HighBPS: int64(math.Round(s.high)), BottleneckBPS: int64(math.Round(s.bottleneck)),
		PacketBytes: int64(held.Payload + s.bounds.HeaderBytes), Payload: int64(held.Payload), Steps: s.steps, End: s.end}
}
