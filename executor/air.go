package executor

import (
	"cmp"
	"fmt"
	"time"

	"linktrial/executor/credible"
	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
	"linktrial/internal/radiocontrol"
	"linktrial/protocols/contract"
)

// stations are the listeners that a flow's packets are to or from, on their way from its
// client on.
func (n *node) stations(f *flow) []credible.Station {
	t := n.sheet.Treatment(f.spec.Treatment)
	var out []credible.Station
	for _, v := range t.Passes(f.spec.ClientAt()) {
		out = append(out, n.relayStation(t, &v))
	}
	return append(out, n.ownStation(t, f.spec.ServerAt()))
}

// ownStation is a treatment's own listener, at the port that its node has said.
func (n *node) ownStation(t *runsheet.Treatment, at radio.Role) credible.Station {
	return credible.Station{At: at, Port: n.ports.at(at, journal.ListenerName{Treatment: t.Name}, t.Port)}
}

// relayStation is a relay process that a treatment passes, at the port that its node has said.
func (n *node) relayStation(t *runsheet.Treatment, v *runsheet.Via) credible.Station {
	return credible.Station{At: v.At, Port: n.ports.at(v.At, journal.ListenerName{Treatment: t.Name, At: v.At}, v.Port)}
}

// ports are those of the listeners on a flow's way.
func (f *flow) ports() (out []int) {
	for _, s := range f.node.stations(f) {
		out = append(out, s.Port)
	}
	return out
}

func (n *node) stationsOf(flows []*flow) []credible.Station {
	var out []credible.Station
	for _, f := range flows {
		out = append(out, n.stations(f)...)
	}
	return out
}

// holdCounts holds what the flows' drivers counted, and their times, against what the
// emulated radios did. Flows of one treatment have one port, and are held together.
func (n *node) holdCounts(flows []*flow, traffic []radiocontrol.Traffic) {
	type group struct {
		treatment string
		from, to  radio.Role
		probe     bool
	}
	groups := map[group][]*flow{}
	for _, f := range flows {
		g := group{f.spec.Treatment, f.spec.From, f.spec.To, f.probe}
		groups[g] = append(groups[g], f)
	}
	for g, all := range groups {
		stations := n.stations(all[0])
		var wrong *credible.Fault
		if g.probe {
			wrong = credible.ArrivedOf(arrivedOf(all), g.from, g.to, traffic, stations)
		} else if again, ok := sentAgain(all); ok {
			wrong = credible.Repaired(again, g.from, stations[0], traffic)
		}
		if wrong == nil && !g.probe && all[0].spec.ClientAt() == g.from {
			wrong = credible.Packets(n.sheet.Network, timesOf(all), len(all), traffic, stations)
		}
		for _, f := range all {
			f.invalidate(wrong)
		}
	}
}

// timesOf are those of the flows that succeeded.
func timesOf(flows []*flow) (out []credible.Times) {
	for _, f := range flows {
		if f.result.Verdict == journal.Succeeded {
			out = append(out, credible.Times{Flow: f.values(), Connect: time.Duration(f.result.ConnectNS)})
		}
	}
	return out
}

// arrivedOf is how many packets of probes have arrived, as their drivers say.
func arrivedOf(probes []*flow) (sum int64) {
	for _, f := range probes {
		if r := f.result.Result; f.result.Verdict == journal.Succeeded && r.Probe != nil {
			sum += r.Probe.Received
		}
	}
	return sum
}

// sentAgain is how many packets drivers say that they sent again or as repairs. It is
// known where every flow was carried to its end over one path by a driver that counts
// them: of one that a time ends, what was sent last may be given up, and a path that was
// given up takes its counts along.
func sentAgain(flows []*flow) (sum int64, ok bool) {
	for _, f := range flows {
		r := f.result.Result
		if f.result.Verdict != journal.Succeeded || f.spec.Duration > 0 || len(r.Paths) > 0 || r.Final == nil || r.Final.Retransmits == nil {
			return 0, false
		}
		sum += *r.Final.Retransmits + int64(r.Final.More[contract.MoreRepairs])
	}
	return sum, true
}

// holdAir makes an attempt worthless during which the emulated radios carried other
// packets than its own. Where the plan has a limit for traffic at ports of no listener,
// that is what decides about it.
func (n *node) holdAir(flows []*flow, report *radiocontrol.Report) {
	if report == nil {
		return
	}
	tolerated := func(t *radiocontrol.Traffic) bool {
		return n.sheet.Valid != nil && n.sheet.Valid.Interfering != nil && !runsheet.ListenerPort(t.SourcePort) && !runsheet.ListenerPort(t.DestinationPort)
	}
	foreign := credible.ForeignTo(n.sheet.Network, report.Traffic, n.stationsOf(flows), tolerated)
	if foreign == nil {
		return
	}
	text := n.foreignText(foreign)
	for _, f := range flows {
		f.excuse(journal.ReasonForeign, text)
	}
}

// foreignText says what else was on the radio, and who sent most of it.
func (n *node) foreignText(f *credible.Foreign) string {
	t := &f.Hop
	what := cmp.Or(protocolWords[t.Protocol], fmt.Sprintf("IP protocol %d", t.Protocol))
	return fmt.Sprintf("other packets than the attempt's passed the emulated radio from %s to %s: %d bytes, beside %d of the attempt; most, %d bytes of %s, were sent by the %s to the %s%s",
		t.From, t.To, f.Bytes, f.Own, t.SentBytes, what, n.endText(t.Source, t.SourcePort, t.Second), n.endText(t.Destination, t.DestinationPort, t.Second), n.ownerText(t))
}

func (n *node) endText(role radio.Role, port int, second bool) string {
	network := n.sheet.Network
	if second {
		network = network.Second
	}
	text := fmt.Sprintf("%s (%s", role, network.AddressOf(role))
	if port > 0 {
		text += fmt.Sprintf(", port %d", port)
	}
	return text + ")"
}

// ownerText names the listener at one of the packets' ends, where one is there.
func (n *node) ownerText(t *radiocontrol.Traffic) string {
	owns := func(s credible.Station) bool { return credible.Of(t, []credible.Station{s}) }
	text := func(s credible.Station, x *runsheet.Treatment, driver string) string {
		return fmt.Sprintf("; port %d of the %s is that of the listener of treatment %s (driver %s)", s.Port, s.At, x.Name, driver)
	}
	for i := range n.sheet.Treatments {
		x := &n.sheet.Treatments[i]
		if s := n.ownStation(x, radio.RoleServer); owns(s) {
			return text(s, x, x.Protocol)
		}
		for k := range x.Via {
			if s := n.relayStation(x, &x.Via[k]); owns(s) {
				return text(s, x, x.Via[k].Protocol)
			}
		}
	}
	return "; no listener of the run has these ports"
}
