package executor

import (
	"math"

	"linktrial/internal/radio"
	"linktrial/protocols/contract"
)

// linkKnowledge is what a treatment with complete knowledge gets to know of the path from one
// node to another: the rates at which it carries a stream, the round trip of a
// full-sized packet, and the loss of one that crosses all hops once.
//
// Both rates are of user bits, after the FEC: 0.875 Mbit/s of 1 Mbit/s on the
// air with RS(255,223) (decola-2006, section 3.2). Where every hop has airtime
// of its own, the narrowest bounds the stream. On a shared medium each bit
// takes the airtime of all hops one after the other, so that the rate is
// 1/(1/r1 + 1/r2 + …): half of a hop's where two are equal.
//
// The one that counts for a protocol is that of IP packets of the MTU: beside their bits
// each takes the airtime of its frames' headers, of the frames that the link repeats, and
// of what lies between two transmissions ([packetTime]).
func linkKnowledge(n *radio.Network, from, to radio.Role) *contract.Link {
	route := n.Route(from, to)
	if len(route) < 2 {
		return nil
	}
	l := &contract.Link{MTUBytes: n.MTUBytes, RoundTripMS: n.RoundTrip(from, to, n.MTUBytes).Seconds() * 1e3}
	shared := n.Medium == radio.MediumShared
	through := 1.0
	bit, packet := usage{shared: shared}, usage{shared: shared && !hasSlots(n)}
	for i := 1; i < len(route); i++ {
		hop := between(n, route[i-1], route[i])
		bit.add(1 / n.UserRate(hop))
		packet.add(packetTime(n, hop, route[i-1], route[i], shared && len(route) > 2))
		through *= 1 - packetLoss(n, hop.Toward(route[i]))
	}
	l.RateBitsPerSecond, l.ChannelRateBitsPerSecond, l.LossShare = float64(8*n.MTUBytes)/packet.seconds, 1/bit.seconds, 1-through
	return l
}

// usage is for how long something that crosses all hops of a way takes the medium: the sum
// over the hops where they share one, else what the narrowest takes.
type usage struct {
	shared  bool
	seconds float64
}

func (u *usage) add(seconds float64) {
	if u.shared {
		u.seconds += seconds
	} else {
		u.seconds = max(u.seconds, seconds)
	}
}

// hasSlots reports whether each radio has time slots of its own (TDMA).
func hasSlots(n *radio.Network) bool { return n.Access != nil && n.Access.TDMA != nil }

// packetTime is for how many seconds a stream of packets of the MTU takes the medium of a
// hop, a packet: its bits and those of the frames around it, the frames that ARQ repeats in
// the mean, and what passes before the next transmission. That is the turnaround where
// another radio forwards the packet on the same medium, the mean wait of a radio that
// nobody contends with where there is carrier sense, and with time slots all that are not
// the sender's own or too short for one more transmission.
func packetTime(n *radio.Network, hop *radio.Link, from, to radio.Role, forwarded bool) float64 {
	count, bytes := 1, n.MTUBytes+n.FrameOverheadBytes
	each := bytes
	if n.Framing != nil {
		count, bytes = n.Framing.Frames(n.MTUBytes)
		each = min(n.Framing.FrameBytes, bytes)
	}
	rate, times := n.UserRate(hop), 1.0
	if n.ARQ != nil {
		if lost := hop.Toward(to).LossOf(each); lost < 1 {
			times = (1 - math.Pow(lost, float64(n.ARQ.Persistence+1))) / (1 - lost)
		}
	}
	if hasSlots(n) {
		t := n.Access.TDMA
		own := 0
		for _, o := range t.Owners {
			if o == from {
				own++
			}
		}
		fit := math.Floor((t.Slot - t.Guard).Seconds() / (float64(8*each) / rate))
		return times * float64(count) * t.Slot.Seconds() * float64(len(t.Owners)) / (fit * float64(own))
	}
	seconds := times * float64(8*bytes) / rate
	switch {
	case n.Access != nil && n.Access.CSMA != nil:
		c := n.Access.CSMA
		seconds += max(c.DIFS, n.Turnaround).Seconds() + c.Slot.Seconds()*float64(c.WindowMin)/2
	case forwarded:
		seconds += n.Turnaround.Seconds()
	}
	return seconds
}

// between is the link of two neighbours on a route.
func between(n *radio.Network, a, b radio.Role) *radio.Link {
	for i := range n.Links {
		if l := &n.Links[i]; l.A == a && l.B == b || l.A == b && l.B == a {
			return l
		}
	}
	panic("a route of the network crosses no link of it")
}

// packetLoss is the share of full-sized packets that do not leave one hop,
// 0…1: lost by the channel, or, with ARQ, with a frame that was given up after
// its last retransmission.
func packetLoss(n *radio.Network, c *radio.Channel) float64 {
	if n.Framing == nil {
		return c.LossOf(n.MTUBytes)
	}
	count, bytes := n.Framing.Frames(n.MTUBytes)
	if n.ARQ == nil {
		return c.LossOf(bytes)
	}
	givenUp := math.Pow(c.LossOf(min(n.Framing.FrameBytes, bytes)), float64(n.ARQ.Persistence+1))
	return 1 - math.Pow(1-givenUp, float64(count))
}
