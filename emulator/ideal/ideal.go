// Package ideal computes the time that an all-knowing sender would need for a
// flow on the very channel realisation that a trial meets. Comes in: a
// network, the realisation's seed, a flow. Goes out: a time. Pure.
//
// The all-knowing sender puts full-sized packets on the air, with 28 bytes of
// IP and UDP header in each so that it has the overhead of the others, each
// when it will get through and only then; a packet shorter than the full size
// may be repeated within one opportunity of the channel. Where bits can be wrong
// and no ARQ repeats frames, smaller sizes are tried as well, in steps of √2, and
// the best one counts: long packets might hardly ever get through. Relays know as much.
// The receiver sends nothing but one acknowledgement of 1 + 28 bytes after the
// last byte. Airtime, frames and their headers, the code's share of the rate, delay,
// turnaround and the sharing of the medium are the emulator's own; queues never
// overflow. The flow is alone on the channel and starts with the channel's clock.
//
// With ARQ each frame is sent when it gets through, so no frame is ever
// retransmitted. Without, the frames of a packet follow each other and all must get
// through. With TDMA each radio keeps to its slots; with CSMA it waits for the
// interframe space and counts down from 0. Where the rate changes over time, a
// transmission waits for a better rate if it ends earlier so.
//
// # Exactness
//
// On full-duplex and half-duplex media, and over one hop, sending each packet
// so that it ends as early as it can is optimal. On a shared medium with a
// relay the hops compete. Serving the
// first hop while both hops would do, and the last hop from some packet on, is
// optimal where no turnaround and no delay interfere (of two transmissions
// that could change places, the first hop's belongs first); every such switching
// point is tried, or a grid of them for long flows, and the best is
// taken. Turnaround and delay can leave the result a little above the true
// optimum, by at most about the time of a few packets; so can, there, frames,
// slots and changing rates. Never below it, but in two cases that no
// transfer can use: where the delay changes over time, a packet is taken
// to arrive as if no other held it up; and where the rate changes or there is
// TDMA, frames without ARQ are placed one by one.
package ideal

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"linktrial/emulator/link"
	"linktrial/internal/radio"
	"linktrial/internal/radiocontrol"
)

const (
	headerBytes = 28 // IPv4 20 (RFC 791) + UDP 8 (RFC 768)
	ackBytes    = headerBytes + 1
)

// ErrCancelled reports that a computation was cancelled.
var ErrCancelled = errors.New("cancelled")

// Time is how long the flow takes, from the start of the channel's clock to
// the arrival of the acknowledgement; 0 where it does not end within horizon.
// cancelled is called now and then, ends the computation with [ErrCancelled] where
// it returns true, and may be nil.
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
	best := time.Duration(0)
	for _, size := range sizes(n) {
		s := &search{n: n, seed: seed, route: route, size: size, horizon: horizon, cancelled: cancelled}
		switch t, err := s.time(flow.SizeBytes); {
		case errors.Is(err, errTooLong):
		case err != nil:
			return 0, err
		default:
			best, horizon = t, t // a longer time would not be used
		}
	}
	return best, nil
}

// leastPacket is the smallest size, as an IP packet, that is tried as full size.
const leastPacket = 96

// sizes returns the packet sizes to try. Where bits can be wrong and no ARQ
// repeats frames, full-sized packets may be the worst choice.
func sizes(n *radio.Network) []int {
	out := []int{n.MTUBytes}
	bits := slices.ContainsFunc(n.Links, func(k radio.Link) bool { return hasBits(*k.Toward(k.A)) || hasBits(*k.Toward(k.B)) })
	if !bits || n.ARQ != nil {
		return out
	}
	for f := math.Sqrt2; float64(n.MTUBytes)/f >= leastPacket; f *= math.Sqrt2 {
		out = append(out, int(float64(n.MTUBytes)/f))
	}
	return out
}

func hasBits(c radio.Channel) bool {
	return c.Model == radio.ChannelHiddenMarkov || slices.ContainsFunc(c.Parts, hasBits)
}

// time returns the whole time of a flow of so many bytes.
func (s *search) time(flowBytes int64) (time.Duration, error) {
	payload := int64(s.size - headerBytes)
	full, rest := flowBytes/payload, flowBytes%payload
	s.lastBytes = s.size
	if rest > 0 {
		full++
		s.lastBytes = int(rest) + headerBytes
	}
	for i := 1; i < len(s.route); i++ {
		k := linkBetween(s.n, s.route[i-1], s.route[i])
		line, err := link.NewLine(s.n, k, s.route[i-1], s.route[i], s.seed)
		if err != nil {
			return 0, err
		}
		// No schedule beats a hop that never pauses and always has its best rate.
		if _, fastest, _ := line.Extremes(); fastest == 0 || float64(full-1)*float64(line.Airtime(s.size, fastest)) > float64(s.horizon) {
			return 0, errTooLong
		}
		s.links = append(s.links, k)
	}
	s.packets = int(full)
	if s.n.Medium == radio.MediumShared && len(s.links) > 1 && s.packets > 0 {
		return s.shared()
	}
	return s.pipeline()
}

var errTooLong = errors.New("beyond the horizon")

// search is one computation.
type search struct {
	n         *radio.Network
	seed      uint64
	route     []radio.Role
	links     []*radio.Link // by hop
	packets   int
	size      int // of a full-sized packet, as an IP packet
	lastBytes int // of the last one
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
			at, err := h.send(s.bytes(p), max(there[p], free[i]+h.gap), s.horizon)
			if err != nil {
				return 0, err
			}
			h.commit(at)
			free[i], there[p] = at.end, at.arrives
		}
	}
	arrived := time.Duration(0)
	if s.packets > 0 {
		arrived = there[s.packets-1]
	}
	return s.acknowledge(arrived, free)
}

// bytes is the size of the i-th packet.
func (s *search) bytes(i int) int {
	if i == s.packets-1 {
		return s.lastBytes
	}
	return s.size
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
		at, err := h.send(ackBytes, max(ready, mediumFree+h.gap), s.horizon)
		if err != nil {
			return 0, err
		}
		if s.n.Medium == radio.MediumShared {
			mediumFree, used = at.end, true
		}
		ready = at.arrives
	}
	if ready > s.horizon {
		return 0, errTooLong
	}
	return ready, nil
}
