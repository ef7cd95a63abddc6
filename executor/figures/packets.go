package figures

import (
	"time"

	"linktrial/executor/journal"
	"linktrial/internal/radio"
	"linktrial/internal/radiocontrol"
)

// packetShare is by how much a driver's clock may run apart from the emulator's: both read
// CLOCK_MONOTONIC of one kernel.
const packetShare = 0.001

// Packets holds the times of a transfer from the client against the moments of its packets
// on the emulated radios. stations are the listeners that they pass, from the client on;
// no other flow of the attempt passes them. It returns nil where the times may be true, and
// where too little is known: over two radios at once, and for several flows.
//
// The client's clock starts before its first byte of payload, so before more than
// [radiocontrol.Opening] bytes have left it, and runs until the server's answer to the last
// byte. Connecting begins before the client's first packet, and ends with the server's
// first byte. However busy the machine is, a packet cannot come before it was sent.
func Packets(n *radio.Network, f *Flow, connect time.Duration, all []radiocontrol.Traffic, stations []Station) *Fault {
	if n == nil || n.Second != nil {
		return nil
	}
	for len(stations) > 0 && stations[0].At == f.From {
		stations = stations[1:] // a relay process beside the client
		connect = longest       // it may have opened its connections before
	}
	if len(stations) == 0 {
		return nil
	}
	first, last := &stations[0], &stations[len(stations)-1]
	for i := range stations { // a relay process beside the server gets the packets
		if stations[i].At == f.To {
			last = &stations[i]
			break
		}
	}
	var left, flowing, answered, carried time.Duration
	for i := range all {
		t := &all[i]
		if t.Source == f.From && t.From == f.From && t.Destination == first.At && t.DestinationPort == first.Port {
			left, flowing = earlier(left, t.FirstAt), earlier(flowing, t.FlowingAt)
		}
		if t.Source == first.At && t.SourcePort == first.Port && t.Destination == f.From && t.To == f.From {
			answered = earlier(answered, t.ArrivedAt)
		}
		if t.Destination == last.At && t.To == last.At && t.DestinationPort == last.Port {
			carried = earlier(carried, t.CarriedAt)
		}
	}
	route := n.Route(f.From, f.To)
	if flowing > 0 && carried > 0 {
		least := carried - flowing + hopOf(n, route[len(route)-2], f.To).delay + answerWay(n, route)
		if f.Elapsed < least-radioSlack-part(least, packetShare) {
			return fault(journal.ReasonFasterThanPackets, "the driver reports %s for the transfer, on the emulated radios %s passed from when it had sent %d bytes until as much as the payload had arrived and an answer could",
				show(f.Elapsed), show(least), radiocontrol.Opening)
		}
	}
	if left > 0 && answered > left {
		least := answered - left + hopOf(n, route[1], f.From).delay
		if connect < least-radioSlack-part(least, packetShare) {
			return fault(journal.ReasonFasterThanPackets, "the driver reports %s for connecting, on the emulated radios %s passed from its first packet until the first answer", show(connect), show(least))
		}
	}
	return nil
}

// Left holds the time of a transfer from this node against what left it over its radio:
// took is from when more than [radiocontrol.Opening] bytes had left, since the listener's
// first packet, until as many as the payload has, at the least; 0 where that is not known.
// The client's clock starts before the first of them and runs until the answer to the last
// byte, so that no honest driver reports less.
func Left(f *Flow, took time.Duration) *Fault {
	if f.Elapsed >= took-radioSlack-part(took, packetShare) {
		return nil
	}
	return fault(journal.ReasonFasterThanPackets, "the driver reports %s for the transfer, on this node's radio %s passed from when it had sent %d bytes until as many bytes as the payload has had left",
		show(f.Elapsed), show(took), radiocontrol.Opening)
}

// earlier is the earlier of two moments, of which 0 is none.
func earlier(a, b time.Duration) time.Duration {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

// longest is more than any time.
const longest = time.Duration(1<<63 - 1)

// answerWay is the least time of the answer over all hops of a route, back.
func answerWay(n *radio.Network, route []radio.Role) (back time.Duration) {
	for i := 1; i < len(route); i++ {
		if answer := hopOf(n, route[i], route[i-1]); answer.rate > 0 {
			back += answer.delay + answer.packet(n, answerBytes)
		}
	}
	return back
}
