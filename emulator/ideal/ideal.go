// Package ideal computes two bounds for a flow on the very channel realisation
// that a trial meets: the time that an all-knowing sender would need, Ideal, and
// that of one who knows the channel's statistics but not its future and has an
// ideal code, the coded bound. Comes in: a network, the realisation's seed, a flow.
// Goes out: two times. Pure.
//
// The all-knowing sender puts full-sized packets on the air, with 28 bytes of
// IP and UDP header in each so that it has the overhead of the others, each
// when it will get through and only then; a packet shorter than the full size
// may be repeated within one opportunity of the channel. Where bits can be wrong
// and no ARQ repeats frames, smaller sizes are tried as well, in steps of √2, and
// the best one counts: long packets might hardly ever get through. Relays know as much.
// The receiver sends nothing but one acknowledgement of 1 + 28 bytes after the
// last byte. That the radio at the end holds packets back or hands some out twice is left
// out: nobody is faster by it. Airtime, frames and their headers, the code's share of the rate, delay,
// turnaround and the sharing of the medium are the emulator's own; queues never
// overflow. The flow is alone on the channel and starts with the channel's clock.
//
// With ARQ each frame is sent when it gets through, so no frame is ever
// retransmitted. Without, the frames of a packet follow each other and all must get
// through. With TDMA each radio keeps to its slots; with CSMA it waits for the
// interframe space and counts down from 0. Where the rate changes over time, a
// transmission waits for a better rate if it ends earlier so.
//
// # Coded bound
//
// The sender without the future has the same packets, sizes, headers and
// acknowledgement, but sends back to back from the first moment on, at whatever
// rate the link has, also during an outage; where the link has no rate it waits.
// What is lost has cost its airtime. With an ideal code any packet
// that gets through is worth as much as any other, so the flow has arrived
// once as many have got through as its bytes fill, the last of them short where the
// bytes fill it only in part: from the moment at which only that one is missing
// it is the short one that is sent. Relays do the same with what they have: each
// hop sends while the next node has fewer packets than it. With ARQ a lost frame is sent
// again at once; without, a lost frame has cost its whole packet. Packets do not overtake
// each other. On a shared medium with a relay the hop sends that can start first; of several,
// the one nearest to the source. There it is also tried that a hop
// whose channel at the moment loses more than half gives way to one that loses
// less, and the better of the two rules counts. The acknowledgement is Ideal's.
//
// Ideal is never longer than the coded bound. The two are equal where nothing is lost and
// neither rate nor delay changes; nearly so, or quite, over one hop whose channel loses
// whole packets, as to wait for the next opportunity takes as long as to lose
// a packet in this one. Ideal gains where that time has another use or a better
// moment comes: over a relay on a shared medium, with frames but no ARQ, with
// changing rates. Where losses of packets are independent with
// probability p, a flow's time on the air is 1/(1 − p) of that without loss in the mean.
// By luck, a single transfer can be faster than the coded bound.
//
// # Relay processes
//
// A relay process on the way may put the bytes into packets of other sizes. Where
// only the full size is tried that changes nothing. Where smaller ones are, each hop
// could have a best size of its own: both bounds are then those of the hop that
// alone takes longest, which is never above the optimum, and below it by what the
// other hops cost.
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
// optimum, by at most about the time of a few packets; so can, there, changing
// rates, and anywhere frames without ARQ. Frames that ARQ sends one by one can leave
// it further above, there: what one hop carries between two frames of a packet on the
// other is not found. Where the coded
// bound is below it, that is Ideal. Never below the optimum, but in three cases that no
// transfer can use: where the delay changes over time, a packet is taken
// to arrive as if no other held it up; where the rate changes or there is
// TDMA, frames without ARQ are placed one by one; and with TDMA and frames a
// turnaround beyond the guard time is left out. With TDMA the hops do not compete
// otherwise: each radio has its slots to itself.
//
// The coded bound follows its rules exactly. In the mean, a sender who does not
// know the future can be faster only by what the rules leave out: waiting for a
// rate that it expects to rise, packets smaller than the full size where the
// channel's slots are shorter than a packet, and, on a shared medium with a relay, a
// better choice between hops. The choice of packet size and rule by their result
// makes the bound a little shorter than that sender could be.
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

// Times is how long a flow takes, from the start of the channel's clock to the
// arrival of the acknowledgement; 0 where it does not end within the horizon.
type Times struct {
	Ideal time.Duration // of the all-knowing sender; never longer than Coded
	Coded time.Duration // of the sender who does not know the future
}

// Compute returns a flow's times. cancelled is called now and then, ends the
// computation with [ErrCancelled] where it returns true, and may be nil.
func Compute(n *radio.Network, seed uint64, flow radiocontrol.Flow, horizon time.Duration, cancelled func() bool) (Times, error) {
	if err := link.Check(n); err != nil {
		return Times{}, err
	}
	if flow.SizeBytes < 0 {
		return Times{}, fmt.Errorf("flow of %d bytes", flow.SizeBytes)
	}
	route := n.Route(flow.From, flow.To)
	if len(route) < 2 {
		return Times{}, fmt.Errorf("no way from %q to %q", flow.From, flow.To)
	}
	if cancelled == nil {
		cancelled = func() bool { return false }
	}
	if flow.Recut && len(route) > 2 && len(sizes(n)) > 1 {
		return computeRecut(n, seed, route, flow.SizeBytes, horizon, cancelled)
	}
	return onRoute(n, seed, route, flow.SizeBytes, horizon, cancelled)
}

// computeRecut returns the times of a flow that a relay puts into packets of other
// sizes: those of the hop that alone takes longest. All bytes pass it, and the
// acknowledgement passes it back.
func computeRecut(n *radio.Network, seed uint64, route []radio.Role, flowBytes int64, horizon time.Duration, cancelled func() bool) (Times, error) {
	var longest Times
	ends := true // within the horizon, without the future
	for i := 1; i < len(route); i++ {
		t, err := onRoute(n, seed, route[i-1:i+1], flowBytes, horizon, cancelled)
		if err != nil || t.Ideal == 0 {
			return Times{}, err
		}
		ends = ends && t.Coded > 0
		longest = Times{max(longest.Ideal, t.Ideal), max(longest.Coded, t.Coded)}
	}
	if !ends {
		longest.Coded = 0
	}
	return longest, nil
}

// onRoute returns the times of a flow whose packets keep their sizes on the route.
func onRoute(n *radio.Network, seed uint64, route []radio.Role, flowBytes int64, horizon time.Duration, cancelled func() bool) (Times, error) {
	s := search{n: n, seed: seed, route: route, horizon: horizon, cancelled: cancelled}
	var t Times
	var err error
	if t.Ideal, err = s.best(flowBytes); err != nil || t.Ideal == 0 {
		return Times{}, err
	}
	s.coded = true
	if t.Coded, err = s.best(flowBytes); err != nil {
		return Times{}, err
	}
	if t.Coded > 0 { // the all-knowing sender could send the same, without what is lost
		t.Ideal = min(t.Ideal, t.Coded)
	}
	return t, nil
}

// best is the time with the best packet size.
func (s search) best(flowBytes int64) (time.Duration, error) {
	best := time.Duration(0)
	for _, size := range sizes(s.n) {
		one := s
		one.size = size
		switch t, err := one.time(flowBytes); {
		case errors.Is(err, errTooLong):
		case err != nil:
			return 0, err
		default:
			best, s.horizon = t, t // a longer time would not be used
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
	if s.n.Medium == radio.MediumShared && len(s.links) > 1 && s.packets > 0 && !s.apart() {
		if s.coded {
			return s.sharedCoded()
		}
		return s.shared()
	}
	return s.pipeline()
}

// apart reports whether the hops of a shared medium do not compete: with TDMA no
// radio can use another's slots. A turnaround beyond the guard time can delay the
// next slot's first transmission; with frames that is left out, because a packet
// whose frames are spread over several slots would keep the others' slots from them.
func (s *search) apart() bool {
	a := s.n.Access
	return a != nil && a.TDMA != nil && (s.n.Turnaround <= a.TDMA.Guard || s.n.Framing != nil)
}

var errTooLong = errors.New("beyond the horizon")

// search is one computation.
type search struct {
	n         *radio.Network
	seed      uint64
	route     []radio.Role
	links     []*radio.Link // by hop
	coded     bool          // without knowledge of the future
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
