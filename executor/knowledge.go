package executor

import (
	"math"

	"linktrial/internal/radio"
	"linktrial/protocols/contract"
)

// linkKnowledge is what a treatment with complete knowledge gets to know of the path from one
// node to another: the rate at which it carries a stream, the round trip of a
// full-sized packet, and the loss of one that crosses all hops once.
//
// Rates are those of user bits, after the FEC: 0.875 Mbit/s of 1 Mbit/s on the
// air with RS(255,223) (decola-2006, section 3.2). Where every hop has airtime
// of its own, the narrowest bounds the stream. On a shared medium each bit
// takes the airtime of all hops one after the other, so that the rate is
// 1/(1/r1 + 1/r2 + …): half of a hop's where two are equal.
func linkKnowledge(n *radio.Network, from, to radio.Role) *contract.Link {
	route := n.Route(from, to)
	if len(route) < 2 {
		return nil
	}
	l := &contract.Link{MTUBytes: n.MTUBytes, RoundTripMS: n.RoundTrip(from, to, n.MTUBytes).Seconds() * 1e3}
	through, airtime := 1.0, 0.0 // airtime: seconds of the medium for one bit
	for i := 1; i < len(route); i++ {
		hop := between(n, route[i-1], route[i])
		perBit := 1 / n.UserRate(hop)
		if n.Medium == radio.MediumShared {
			airtime += perBit
		} else {
			airtime = max(airtime, perBit)
		}
		through *= 1 - packetLoss(n, hop.Toward(route[i]))
	}
	l.RateBitsPerSecond, l.LossShare = 1/airtime, 1-through
	return l
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
