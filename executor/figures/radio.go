package figures

import (
	"time"

	"linktrial/executor/journal"
	"linktrial/internal/radio"
	"linktrial/internal/radiocontrol"
)

const (
	// clockShare is by how much a driver's clock may run apart from the
	// emulator's.
	clockShare = 0.01
	// idealSlack is the time that a busy machine may let pass between a
	// driver's connected event and the start of its clock, which counts neither
	// as connecting nor as transfer.
	idealSlack = 50 * time.Millisecond
	// idealPackets is how many packets' time on the air Ideal may lie above the
	// true optimum where hops share the medium (emulator/ideal); with TDMA a
	// round of slots more.
	idealPackets = 4
)

// Flow is what a client reports of one flow.
type Flow struct {
	From, To  radio.Role
	SizeBytes int64         // payload of its result
	Elapsed   time.Duration // of its result
	// End is when the transfer ended by the driver's clock, after the channel's
	// start: when the executor read its connected event, plus Elapsed. 0: not known.
	End time.Duration
}

// Faster holds a flow's time against the rate of the emulated radios on its way
// and against Ideal, the time of a sender who knows the channel beforehand; 0:
// there is none.
func Faster(n *radio.Network, f *Flow, ideal time.Duration) *Fault {
	if n == nil {
		return nil
	}
	route := n.Route(f.From, f.To)
	shared := n.Medium == radio.MediumShared
	var least, air time.Duration // of the payload on all hops, of a full packet on the slowest hop
	for i := 1; i < len(route); i++ {
		rate := fastest(n, route[i-1], route[i])
		if rate <= 0 {
			continue
		}
		on := seconds(float64(f.SizeBytes) * 8 / rate)
		if shared { // one transmission at a time
			least += on
		} else {
			least = max(least, on)
		}
		air = max(air, seconds(float64(n.MTUBytes)*8/rate))
	}
	if f.Elapsed < least-part(least) {
		return fault(journal.ReasonFasterThanRadio, "the driver reports %s for %d bytes of payload, the emulated radios need %s at their highest rates", show(f.Elapsed), f.SizeBytes, show(least))
	}
	slack := idealSlack + part(ideal)
	if shared && len(route) > 2 {
		slack += idealPackets * air
		if n.Access != nil && n.Access.TDMA != nil {
			slack += time.Duration(len(n.Access.TDMA.Owners)) * n.Access.TDMA.Slot
		}
	}
	if ideal > 0 && f.End > 0 && f.End < ideal-slack {
		return fault(journal.ReasonFasterThanIdeal, "by the driver's times the transfer ended %s after the channel's start, a sender who knows the channel beforehand needs %s", show(f.End), show(ideal))
	}
	return nil
}

// Delivered holds the payload of all flows of an attempt against what the
// emulated radios delivered on each hop of their ways.
func Delivered(n *radio.Network, flows []Flow, hops []radiocontrol.Hop) *Fault {
	if n == nil || len(hops) == 0 {
		return nil
	}
	type hop struct{ from, to radio.Role }
	payload := map[hop]int64{}
	for _, f := range flows {
		route := n.Route(f.From, f.To)
		for i := 1; i < len(route); i++ {
			payload[hop{route[i-1], route[i]}] += f.SizeBytes
		}
	}
	for _, h := range hops {
		if p := payload[hop{h.From, h.To}]; p > h.DeliveredBytes {
			return fault(journal.ReasonMoreThanSent, "the drivers report %d bytes of payload, the emulated radio delivered %d bytes with all headers from %s to %s", p, h.DeliveredBytes, h.From, h.To)
		}
	}
	return nil
}

// fastest is the highest rate that user bits ever have on a hop, in bit/s; 0
// where it is not known.
func fastest(n *radio.Network, from, to radio.Role) float64 {
	for i := range n.Links {
		l := &n.Links[i]
		if l.A == from && l.B == to || l.A == to && l.B == from {
			link := *l
			link.RateBitsPerSecond = max(l.RateBitsPerSecond, traced(l.Toward(to)))
			return n.UserRate(&link)
		}
	}
	return 0
}

// traced is the highest rate of a channel's traces.
func traced(c *radio.Channel) (rate float64) {
	if c.Trace != nil {
		for _, r := range c.Trace.RateBitsPerSecond {
			rate = max(rate, r)
		}
	}
	for i := range c.Parts {
		rate = max(rate, traced(&c.Parts[i]))
	}
	return rate
}

func seconds(s float64) time.Duration    { return time.Duration(s * 1e9) }
func part(d time.Duration) time.Duration { return time.Duration(clockShare * float64(d)) }
