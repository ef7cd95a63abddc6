package credible

import (
	"slices"
	"time"

	"linktrial/executor/journal"
	"linktrial/internal/radio"
	"linktrial/internal/radiocontrol"
)

const (
	// radioShare is by how much a driver's clock may run apart from the
	// emulator's.
	radioShare = 0.01
	// radioSlack is by how much the emulator may release a packet too early: it
	// reads packets that come together with one look at its clock (emulator/tun).
	radioSlack = 2 * time.Millisecond
	// idealPackets is how many packets' time on the air Ideal may lie above the
	// true optimum where hops share the medium (emulator/ideal); with TDMA a
	// round of slots more.
	idealPackets = 4
	// headerBytes is the least about the payload in every packet: the IPv4
	// header without options (RFC 791).
	headerBytes = 20
	answerBytes = headerBytes + 1
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

// Faster holds a flow's time against what the emulated radios on its way need,
// and against Ideal, the time of a sender who knows the channel beforehand; 0:
// there is none.
func Faster(n *radio.Network, f *Flow, ideal time.Duration, t *Tolerance) *Fault {
	if n == nil {
		return nil
	}
	if least := LeastOfBoth(n, f); f.Elapsed < least-radioSlack-part(least, radioShare) {
		return fault(journal.ReasonFasterThanRadio, "the driver reports %s for %d bytes of payload, the emulated radios need %s at their highest rates for it and the answer", show(f.Elapsed), f.SizeBytes, show(least))
	}
	if ideal > 0 && f.End > 0 && !boundless(n, f) && f.End < ideal-idealSlack(n, f, ideal, t) {
		return fault(journal.ReasonFasterThanIdeal, "by the driver's times the transfer ended %s after the channel's start, a sender who knows the channel beforehand needs %s", show(f.End), show(ideal))
	}
	return nil
}

// boundless reports whether Ideal may lie above the true optimum by more than a few
// packets: where hops share the medium and frames are sent one by one
// (emulator/ideal).
func boundless(n *radio.Network, f *Flow) bool {
	tdma := n.Access != nil && n.Access.TDMA != nil
	return n.Medium == radio.MediumShared && len(n.Route(f.From, f.To)) > 2 && n.Framing != nil && !tdma
}

// idealSlack is by how much the end of a flow may lie before Ideal.
func idealSlack(n *radio.Network, f *Flow, ideal time.Duration, t *Tolerance) time.Duration {
	slack := t.Gap + part(ideal, min(t.Share, radioShare))
	route := n.Route(f.From, f.To)
	if n.Medium != radio.MediumShared || len(route) <= 2 {
		return slack
	}
	air := time.Duration(0) // of a full packet on the slowest hop
	for i := 1; i < len(route); i++ {
		if h := hopOf(n, route[i-1], route[i]); h.rate > 0 {
			air = max(air, h.packet(n, n.MTUBytes))
		}
	}
	slack += idealPackets * air
	if n.Access != nil && n.Access.TDMA != nil {
		slack += time.Duration(len(n.Access.TDMA.Owners)) * n.Access.TDMA.Slot
	}
	return slack
}

// LeastOfBoth is [Least] where the nodes have two radios: of the payload divided
// between them so that both need as long.
func LeastOfBoth(n *radio.Network, f *Flow) time.Duration {
	least := Least(n, f)
	if n.Second == nil {
		return least
	}
	least = min(least, Least(n.Second, f))
	for low, high := int64(0), f.SizeBytes; high-low > 1; {
		one, two := *f, *f
		one.SizeBytes = low + (high-low)/2
		two.SizeBytes = f.SizeBytes - one.SizeBytes
		first, second := Least(n, &one), Least(n.Second, &two)
		least = min(least, max(first, second))
		if first > second {
			high = one.SizeBytes
		} else {
			low = one.SizeBytes
		}
	}
	return least
}

// Least is the least time between the moment at which a client may send the
// payload and the arrival of the server's answer to its last byte, whatever the
// protocol: all of the payload passes every hop, in packets of the largest size
// with nothing but IPv4 headers, at the highest rate and shortest delay that the
// hop ever has, and in the turns of its medium at their best; then the answer of
// one byte passes them back. Nothing is lost, and no radio waits for another.
func Least(n *radio.Network, f *Flow) time.Duration {
	route := n.Route(f.From, f.To)
	shared := n.Medium == radio.MediumShared
	turns := turnsOf(n)
	var sum, slowest, delays time.Duration // of the payload on all hops, on the slowest; of propagation
	last := time.Duration(0)               // propagation on the hop to the server
	for i := 1; i < len(route); i++ {
		there := hopOf(n, route[i-1], route[i])
		if there.rate <= 0 {
			continue
		}
		air := there.payload(n, f.SizeBytes) + time.Duration(packets(n, f.SizeBytes)-1)*turns.gap
		sum, slowest = sum+air, max(slowest, turns.owned(route[i-1], air))
		delays, last = delays+there.delay, there.delay
	}
	// On a shared medium there is one transmission at a time, and a change of the
	// sender between two hops; while a packet propagates others may be sent.
	data, arrived := slowest, delays
	if shared {
		data = max(slowest+delays-last, sum+time.Duration(len(route)-2)*turns.change)
		arrived = last
	}
	// The answer waits for the last byte's arrival and for the radio's turnaround,
	// which pass at the same time.
	return data + max(arrived, turns.change) + answerWay(n, route)
}

// turns is what the access to the medium costs at its best.
type turns struct {
	change time.Duration // idle time between transmissions of two radios
	gap    time.Duration // idle time between two packets of one radio
	tdma   *radio.TDMA
	round  []radio.Role // owners of the slots of a round
}

func turnsOf(n *radio.Network) turns {
	t := turns{change: n.Turnaround}
	if n.Medium == radio.MediumFullDuplex {
		t.change = 0
	}
	if n.Access == nil {
		return t
	}
	if c := n.Access.CSMA; c != nil { // every packet waits, with the shortest draw no slot more
		t.gap = max(c.DIFS, n.Turnaround)
		t.change = t.gap
	}
	if t.tdma = n.Access.TDMA; t.tdma != nil {
		for _, owner := range t.tdma.Owners { // those who are not there have no slots
			if slices.ContainsFunc(n.Nodes, func(v radio.Node) bool { return v.Role == owner }) {
				t.round = append(t.round, owner)
			}
		}
	}
	return t
}

// owned is the least time in which a radio can be on the air for so long in its
// slots. Whenever a time as long as a round begins, the radio's slots in it add
// up to the same, so each such amount but the last takes a whole round.
func (t *turns) owned(by radio.Role, air time.Duration) time.Duration {
	own := time.Duration(0)
	for _, owner := range t.round {
		if owner == by {
			own += t.tdma.Slot - t.tdma.Guard
		}
	}
	if own <= 0 || air <= 0 {
		return air
	}
	rounds := (air - 1) / own
	return air + rounds*(time.Duration(len(t.round))*t.tdma.Slot-own)
}

// Delivered holds the payload of all flows of an attempt against what the
// emulated radios delivered on each hop of their ways: at the ports of the attempt's
// listeners, where the report has that, else of all packets.
func Delivered(n *radio.Network, flows []Flow, report *radiocontrol.Report, stations []Station) *Fault {
	if n == nil || report == nil || len(report.Hops) == 0 {
		return nil
	}
	type way struct{ from, to radio.Role }
	payload := map[way]int64{}
	for _, f := range flows {
		route := n.Route(f.From, f.To)
		for i := 1; i < len(route); i++ {
			payload[way{route[i-1], route[i]}] += f.SizeBytes
		}
	}
	delivered := map[way]int64{} // by all radios of the nodes
	of := ""
	if len(report.Traffic) > 0 {
		of = " to and from the ports of the attempt"
		for i := range report.Traffic {
			if t := &report.Traffic[i]; Of(t, stations) {
				delivered[way{t.From, t.To}] += t.DeliveredBytes
			}
		}
	} else {
		for _, h := range report.Hops {
			delivered[way{h.From, h.To}] += h.DeliveredBytes
		}
	}
	for _, h := range report.Hops {
		at := way{h.From, h.To}
		if p := payload[at]; p > delivered[at] {
			return fault(journal.ReasonMoreThanSent, "the drivers report %d bytes of payload, the emulated radio delivered %d bytes with all headers from %s to %s%s", p, delivered[at], h.From, h.To, of)
		}
	}
	return nil
}

// hop is one direction of a link at its best.
type hop struct {
	rate  float64 // the highest that user bits ever have, in bit/s; 0: not known
	delay time.Duration
}

func hopOf(n *radio.Network, from, to radio.Role) hop {
	for i := range n.Links {
		l := &n.Links[i]
		if l.A == from && l.B == to || l.A == to && l.B == from {
			link, c := *l, l.Toward(to)
			link.RateBitsPerSecond = max(l.RateBitsPerSecond, traced(c))
			delay, ok := nearest(c)
			if !ok {
				delay = l.Delay
			}
			return hop{n.UserRate(&link), delay}
		}
	}
	return hop{}
}

// air is how long so many bytes are on the air.
func (h hop) air(bytes float64) time.Duration { return time.Duration(bytes * 8e9 / h.rate) }

// packet is how long one IP packet is on the air.
func (h hop) packet(n *radio.Network, bytes int) time.Duration {
	if n.Framing == nil {
		return h.air(float64(bytes + n.FrameOverheadBytes))
	}
	_, framed := n.Framing.Frames(bytes)
	return h.air(float64(framed))
}

// payload is the least time on the air of a payload in full packets.
func (h hop) payload(n *radio.Network, size int64) time.Duration {
	packets := float64(packets(n, size))
	bytes := float64(size) + packets*headerBytes
	if n.Framing == nil {
		return h.air(bytes + packets*float64(n.FrameOverheadBytes))
	}
	// Frames as full as they can be: a packet's last one may be shorter.
	frames := bytes / float64(max(1, n.Framing.FrameBytes-n.Framing.HeaderBytes))
	return h.air(bytes + frames*float64(n.Framing.HeaderBytes))
}

// packets is how many packets a payload needs at least.
func packets(n *radio.Network, size int64) int64 {
	most := int64(max(1, n.MTUBytes-headerBytes))
	return max(1, (size+most-1)/most)
}

// nearest is the shortest delay by a channel's traces, which add up; false where
// none has delays.
func nearest(c *radio.Channel) (delay time.Duration, ok bool) {
	if c.Trace != nil && len(c.Trace.Delay) > 0 {
		delay, ok = slices.Min(c.Trace.Delay), true
	}
	for i := range c.Parts {
		d, is := nearest(&c.Parts[i])
		delay, ok = delay+d, ok || is
	}
	return delay, ok
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

func part(d time.Duration, share float64) time.Duration { return time.Duration(share * float64(d)) }
