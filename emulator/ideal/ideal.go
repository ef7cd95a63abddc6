// Package ideal computes the time that an all-knowing sender would need for a
// flow on the very channel realisation that a trial meets. Comes in: a
// network, the realisation's seed, a flow. Goes out: a time. Pure; imports
// emulator/link, emulator/channel, internal/radio and internal/radiocontrol.
//
// The all-knowing sender puts full-sized packets on the air, with 28 bytes of
// IP and UDP header in each so that it has the overhead of the others, each
// when it will get through and only then; a packet shorter than the full size
// may be repeated within one opportunity of the channel. Relays are as wise. Nothing goes back but
// one acknowledgement of 1 + 28 bytes after the last byte. Airtime, frame
// overhead, delay, turnaround and the sharing of the medium are the
// emulator's own; queues never overflow. The flow is alone on the channel and
// starts with the channel's clock.
//
// # Exactness
//
// On full-duplex and half-duplex media, and over one hop, sending each packet
// at the first moment at which it gets through is optimal: a later start never
// ends earlier. On a shared medium with a relay the hops compete. Serving the
// first hop while both hops would do, and the last hop from some packet on, is
// optimal where no turnaround and no delay interfere (of two transmissions
// that could change places, the first hop's belongs first); every such switching
// point is tried, or a grid of them for long flows, and the best is
// taken. Turnaround and delay can leave the result a little above the true
// optimum, by at most about the time of a few packets: never below it.
package ideal

import (
	"errors"
	"fmt"
	"time"

	"linktrial/emulator/channel"
	"linktrial/emulator/link"
	"linktrial/internal/radio"
	"linktrial/internal/radiocontrol"
)

const (
	headerBytes = 28 // IPv4 20 (RFC 791) + UDP 8 (RFC 768)
	ackBytes    = headerBytes + 1
)

// ErrCancelled reports a computation that was told to stop.
var ErrCancelled = errors.New("cancelled")

// Time is how long the flow takes, from the start of the channel's clock to
// the arrival of the acknowledgement; 0 where it does not end within horizon.
// cancelled is asked now and then and may be nil.
func Time(n *radio.Network, seed uint64, flow radiocontrol.Flow, horizon time.Duration, cancelled func() bool) (time.Duration, error) {
	if err := link.Check(n); err != nil {
		return 0, err
	}
	if flow.SizeBytes < 0 {
		return 0, fmt.Errorf("flow of %d bytes", flow.SizeBytes)
	}
	route := n.Route(flow.From, flow.To)
	if len(route) < 2 {
		return 0, fmt.Errorf("no way from %q to %q", flow.From, flow.To)
	}
	if cancelled == nil {
		cancelled = func() bool { return false }
	}
	s := &search{n: n, seed: seed, route: route, horizon: horizon, cancelled: cancelled}
	payload := int64(n.MTUBytes - headerBytes)
	full, rest := flow.SizeBytes/payload, flow.SizeBytes%payload
	s.lastBytes = n.MTUBytes
	if rest > 0 {
		full++
		s.lastBytes = int(rest) + headerBytes
	}
	for i := 1; i < len(route); i++ {
		k := linkBetween(n, route[i-1], route[i])
		// No schedule beats a hop that never pauses.
		if float64(full-1)*float64(link.Airtime(n, k, n.MTUBytes)) > float64(horizon) {
			return 0, nil
		}
		s.links = append(s.links, k)
	}
	s.packets = int(full)

	var best time.Duration
	var err error
	if n.Medium == radio.MediumShared && len(s.links) > 1 && s.packets > 0 {
		best, err = s.shared()
	} else {
		best, err = s.pipeline()
	}
	if errors.Is(err, errTooLong) {
		return 0, nil
	}
	return best, err
}

var errTooLong = errors.New("beyond the horizon")

// search is one computation.
type search struct {
	n         *radio.Network
	seed      uint64
	route     []radio.Role
	links     []*radio.Link // by hop
	packets   int
	lastBytes int // size of the last packet, as an IP packet
	horizon   time.Duration
	cancelled func() bool
}

func linkBetween(n *radio.Network, a, b radio.Role) *radio.Link {
	for i := range n.Links {
		if k := &n.Links[i]; k.A == a && k.B == b || k.A == b && k.B == a {
			return k
		}
	}
	return nil
}

// hop finds, on one direction of a link, when packets get through.
type hop struct {
	s       *search
	process channel.Process
	delay   time.Duration
	full    time.Duration // airtimes
	last    time.Duration
	steps   int
}

func (s *search) hop(i int, back bool) (*hop, error) {
	from, to := s.route[i], s.route[i+1]
	if back {
		from, to = to, from
	}
	k := s.links[i]
	p, err := link.Realisation(s.n, k, from, to, s.seed)
	if err != nil {
		return nil, err
	}
	return &hop{s: s, process: p, delay: k.Delay,
		full: link.Airtime(s.n, k, s.n.MTUBytes), last: link.Airtime(s.n, k, s.lastBytes)}, nil
}

// air is the airtime of the i-th packet.
func (h *hop) air(i int) time.Duration {
	if i == h.s.packets-1 {
		return h.last
	}
	return h.full
}

// start is the first moment from ready on at which a transmission gets
// through. Ready must not decrease from call to call below an earlier answer.
func (h *hop) start(ready, air, horizon time.Duration) (time.Duration, error) {
	for at := ready; at <= horizon; {
		lost, until := h.process.Foresee(at, at+air, 0)
		if !lost {
			return at, nil
		}
		// Of short packets several can start in one opportunity, each with a
		// fate of its own, so repeating can be faster than waiting.
		for nth, again := uint64(1), at+air; again < min(until, at+h.full); nth, again = nth+1, again+air {
			if lost, _ := h.process.Foresee(again, again+air, nth); !lost {
				return again, nil
			}
		}
		at = until
		if h.steps++; h.steps%4096 == 0 && h.s.cancelled() {
			return 0, ErrCancelled
		}
	}
	return 0, errTooLong
}

// pipeline is the schedule where hops do not compete: each hop sends its
// packets in order, each as soon as it can.
func (s *search) pipeline() (time.Duration, error) {
	there := make([]time.Duration, s.packets) // when packet i can leave on the next hop
	free := make([]time.Duration, len(s.links))
	for i := range s.links {
		h, err := s.hop(i, false)
		if err != nil {
			return 0, err
		}
		for p := range there {
			at, err := h.start(max(there[p], free[i]), h.air(p), s.horizon)
			if err != nil {
				return 0, err
			}
			free[i] = at + h.air(p)
			there[p] = free[i] + h.delay
		}
	}
	arrived := time.Duration(0)
	if s.packets > 0 {
		arrived = there[s.packets-1]
	}
	return s.acknowledge(arrived, free)
}

// acknowledge takes the last byte's acknowledgement back from the destination,
// where it is ready at the given time. free is when the data's last
// transmission on each hop ended.
func (s *search) acknowledge(ready time.Duration, free []time.Duration) (time.Duration, error) {
	mediumFree := time.Duration(0) // shared: end of the last transmission of all
	if s.n.Medium == radio.MediumShared {
		for _, f := range free {
			mediumFree = max(mediumFree, f)
		}
	}
	used := s.packets > 0
	for i := len(s.links) - 1; i >= 0; i-- {
		h, err := s.hop(i, true)
		if err != nil {
			return 0, err
		}
		switch s.n.Medium {
		case radio.MediumHalfDuplex:
			mediumFree = free[i]
		case radio.MediumFullDuplex:
			mediumFree, used = 0, false
		}
		if used {
			ready = max(ready, mediumFree+s.n.Turnaround)
		}
		air := link.Airtime(s.n, s.links[i], ackBytes)
		at, err := h.start(ready, air, s.horizon)
		if err != nil {
			return 0, err
		}
		if s.n.Medium == radio.MediumShared {
			mediumFree, used = at+air, true
		}
		ready = at + air + h.delay
	}
	if ready > s.horizon {
		return 0, errTooLong
	}
	return ready, nil
}
