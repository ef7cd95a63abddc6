package credible

import (
	"fmt"
	"slices"
	"time"

	"linktrial/executor/journal"
	"linktrial/internal/radio"
	"linktrial/internal/radiocontrol"
)

// packetShare is by how much a driver's clock may run apart from the emulator's: both read
// CLOCK_MONOTONIC of one kernel.
const packetShare = 0.001

// Times are what a client reports of a transfer.
type Times struct {
	Flow
	Connect time.Duration
}

// Packets holds the times of transfers from their clients against the moments of their
// packets on the emulated radios. stations are the listeners that they pass, from the
// client on; flows, of which times has those that succeeded, are all that pass them in the
// attempt. It returns nil where the times may be true, and where too little is known: over
// two radios at once.
//
// The client's clock starts before its first byte of payload, so before more than
// [radiocontrol.Opening] bytes have left it, and runs until the server's answer to the last
// byte. Connecting begins before the client's first packet, and ends with the server's
// first byte. However busy the machine is, a packet cannot come before it was sent.
func Packets(n *radio.Network, times []Times, flows int, all []radiocontrol.Traffic, stations []Station) *Fault {
	if n == nil || n.Second != nil || len(times) == 0 {
		return nil
	}
	from, to := times[0].From, times[0].To
	connects := true
	for len(stations) > 0 && stations[0].At == from {
		stations = stations[1:] // a relay process beside the client
		connects = false        // it may have opened its connections before
	}
	if len(stations) == 0 {
		return nil
	}
	w := &way{network: n, traffic: all, from: from, first: stations[0], last: stations[len(stations)-1], connects: connects}
	for _, s := range stations { // a relay process beside the server gets the packets
		if s.At == to {
			w.last = s
			break
		}
	}
	if flows > 1 {
		return w.several(times)
	}
	return w.one(&times[0])
}

// way is what a transfer's packets pass.
type way struct {
	network     *radio.Network
	traffic     []radiocontrol.Traffic
	from        radio.Role
	first, last Station // listeners
	connects    bool    // the transfer's connection is opened by its client
}

// sent reports whether packets are those that the client sends to the first listener, at
// their first hop.
func (w *way) sent(t *radiocontrol.Traffic) bool {
	return t.Source == w.from && t.From == w.from && t.Destination == w.first.At && t.DestinationPort == w.first.Port
}

// one holds the times of the only flow.
func (w *way) one(x *Times) *Fault {
	var left, flowing, answered, carried time.Duration
	for i := range w.traffic {
		t := &w.traffic[i]
		if w.sent(t) {
			left, flowing = earlier(left, t.FirstAt), earlier(flowing, t.FlowingAt)
		}
		if t.Source == w.first.At && t.SourcePort == w.first.Port && t.Destination == w.from && t.To == w.from {
			answered = earlier(answered, t.ArrivedAt)
		}
		if t.Destination == w.last.At && t.To == w.last.At && t.DestinationPort == w.last.Port {
			carried = earlier(carried, t.CarriedAt)
		}
	}
	if flowing > 0 && carried > 0 {
		least := carried - flowing + w.answer(w.from, w.last.At)
		if shorter(x.Elapsed, least) {
			return fault(journal.ReasonFasterThanPackets, "the driver reports %s for the transfer, on the emulated radios %s passed from when it had sent %d bytes until as much as the payload had arrived and an answer could",
				show(x.Elapsed), show(least), radiocontrol.Opening)
		}
	}
	if w.connects && left > 0 && answered > left {
		if least := answered - left + w.lastDelay(w.from, w.first.At); shorter(x.Connect, least) {
			return fault(journal.ReasonFasterThanPackets, "the driver reports %s for connecting, on the emulated radios %s passed from its first packet until the first answer", show(x.Connect), show(least))
		}
	}
	return nil
}

// several holds the times of flows to one listener, whose connections nobody can assign to
// them: the transfers' times in order are held against those of the connections in order.
func (w *way) several(times []Times) *Fault {
	var transfers, connecting []time.Duration
	for i := range w.traffic {
		if t := &w.traffic[i]; w.sent(t) {
			for _, c := range t.Connections {
				transfers, connecting = append(transfers, w.transfer(&c)), append(connecting, w.connecting(&c))
			}
		}
	}
	elapsed, connect := make([]time.Duration, len(times)), make([]time.Duration, len(times))
	for i := range times {
		elapsed[i], connect[i] = times[i].Elapsed, times[i].Connect
	}
	if said, least, nth := inOrder(elapsed, transfers); nth > 0 {
		return fault(journal.ReasonFasterThanPackets, "of %d transfers to one listener the drivers report %s for the %s; on the emulated radios the %s of the connections to it took %s from when it had sent %d bytes until as much as the payload had arrived and an answer could",
			len(times), show(said), shortest(nth), shortest(nth), show(least), radiocontrol.Opening)
	}
	if !w.connects {
		return nil
	}
	if said, least, nth := inOrder(connect, connecting); nth > 0 {
		return fault(journal.ReasonFasterThanPackets, "of %d transfers to one listener the drivers report %s for the %s time of connecting; on the emulated radios the %s took %s from its first packet until the first answer",
			len(times), show(said), shortest(nth), shortest(nth), show(least))
	}
	return nil
}

// transfer is the least time of a transfer over a connection to the first listener; 0: it
// is not known.
func (w *way) transfer(c *radiocontrol.Connection) time.Duration {
	if c.FlowingAt == 0 || c.CarriedAt <= c.FlowingAt {
		return 0
	}
	return c.CarriedAt - c.FlowingAt + w.answer(w.from, w.first.At)
}

// connecting is the least time in which a connection to the first listener was opened; 0:
// it is not known.
func (w *way) connecting(c *radiocontrol.Connection) time.Duration {
	if c.AnsweredAt <= c.FirstAt {
		return 0
	}
	return c.AnsweredAt - c.FirstAt + w.lastDelay(w.from, w.first.At)
}

// answer is the least time that is left when the last packet of a payload begins to pass
// its last hop: until it has arrived, and the answer has come back.
func (w *way) answer(from, to radio.Role) time.Duration {
	route := w.network.Route(from, to)
	return hopOf(w.network, route[len(route)-2], to).delay + answerWay(w.network, route)
}

// lastDelay is that of the last hop back to the client.
func (w *way) lastDelay(client, listener radio.Role) time.Duration {
	return hopOf(w.network, w.network.Route(client, listener)[1], client).delay
}

// inOrder holds times against connections: each transfer has one of its own, which took no
// longer, so that the nth shortest transfer took at least as long as the nth shortest
// connection. Where fewer connections are known than there are transfers, the shortest
// transfers may have those that are not. nth is 0 where the times may be true.
func inOrder(times, connections []time.Duration) (said, least time.Duration, nth int) {
	slices.Sort(times)
	slices.Sort(connections)
	unknown := max(0, len(times)-len(connections))
	for i := unknown; i < len(times); i++ {
		if least := connections[i-unknown]; shorter(times[i], least) {
			return times[i], least, i + 1
		}
	}
	return 0, 0, 0
}

// shorter reports whether a time is less than the least, by more than what is tolerated.
func shorter(said, least time.Duration) bool {
	return said < least-radioSlack-part(least, packetShare)
}

// Left holds the times of transfers from this node to one listener against what left it
// over its radio. For one transfer, whole is how long it took from when more than
// [radiocontrol.Opening] bytes had left, since the listener's first packet, until as many
// as the payload has had left over all connections; 0: that is not known.
//
// The client's clock starts before the first of them and runs until the answer to the last
// byte, and connecting begins before the first packet and ends with a byte of the listener,
// so that no honest driver reports less.
func Left(times []Times, connections []LeftConnection, whole time.Duration) *Fault {
	elapsed, connect := make([]time.Duration, len(times)), make([]time.Duration, len(times))
	for i := range times {
		elapsed[i], connect[i] = times[i].Elapsed, times[i].Connect
	}
	var took, opening []time.Duration
	for _, c := range connections {
		if c.Took > 0 {
			took, opening = append(took, c.Took), append(opening, c.Connecting)
		}
	}
	if len(took) < len(times) && len(times) == 1 && whole > 0 {
		took = append(took, whole) // divided over several
	}
	if said, least, nth := inOrder(elapsed, took); nth > 0 {
		return fault(journal.ReasonFasterThanPackets, "%s reports %s for the transfer, on this node's radio %s passed from when it had sent %d bytes until as many bytes as the payload has had left",
			who(len(times), nth), show(said), show(least), radiocontrol.Opening)
	}
	if said, least, nth := inOrder(connect, opening); nth > 0 {
		return fault(journal.ReasonFasterThanPackets, "%s reports %s for connecting, on this node's radio %s passed from its first packet until the first answer",
			who(len(times), nth), show(said), show(least))
	}
	return nil
}

// LeftConnection is how long the packets of one connection took on a node's radio.
type LeftConnection struct {
	Took       time.Duration // from when payload was flowing until as much as a transfer has had left; 0: it has not, or that is not known
	Connecting time.Duration // from its first packet until the first answer; 0: that is not known
}

// who names the driver of one of several transfers to one listener, whose connections are
// held against them in order.
func who(transfers, nth int) string {
	if transfers < 2 {
		return "the driver"
	}
	return fmt.Sprintf("of %d transfers to one listener, whose connections are taken in the same order, the driver of the %s", transfers, shortest(nth))
}

// shortest words a place in an order that begins with the shortest.
func shortest(nth int) string {
	switch nth {
	case 1:
		return "shortest"
	case 2:
		return "2nd shortest"
	case 3:
		return "3rd shortest"
	}
	return fmt.Sprintf("%dth shortest", nth) // to the 20th; nodes carry fewer
}

// earlier is the earlier of two moments, of which 0 is none.
func earlier(a, b time.Duration) time.Duration {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

// answerWay is the least time of the answer over all hops of a route, back.
func answerWay(n *radio.Network, route []radio.Role) (back time.Duration) {
	for i := 1; i < len(route); i++ {
		if answer := hopOf(n, route[i], route[i-1]); answer.rate > 0 {
			back += answer.delay + answer.packet(n, answerBytes)
		}
	}
	return back
}
