package executor

import (
	"slices"

	"linktrial/executor/credible"
)

// timePackets begins to note when packets leave this node, for an attempt's flows that start
// here; the returned function holds the times of those against them that carry a payload of
// a size, to a listener with no others.
func (n *node) timePackets(flows []*flow) (hold func()) {
	nothing := func() {}
	if n.PacketsSent == nil {
		return nothing
	}
	to, payloads := map[int][]*flow{}, map[int]Payloads{}
	for _, f := range flows {
		port := n.firstPort(f)
		to[port] = append(to[port], f)
	}
	for port, all := range to {
		if slices.ContainsFunc(all, func(f *flow) bool {
			return f.probe || f.spec.Duration > 0 || f.spec.From != n.Role || f.spec.ClientAt() != n.Role
		}) {
			continue
		}
		payloads[port] = payloadsOf(all)
	}
	if len(payloads) == 0 {
		return nothing
	}
	unknown := func(err error) {
		n.log.Warn("packets of an attempt are not timed: the drivers' times are not held against them", "error", err)
	}
	if err := n.PacketsSent.Begin(payloads); err != nil {
		unknown(err)
		return nothing
	}
	return func() {
		sent, whole, err := n.PacketsSent.Took()
		if err != nil {
			unknown(err)
			return
		}
		for port := range payloads {
			wrong := credible.Left(timesOf(to[port]), n.leftFor(sent, to[port][0], port), whole[port])
			for _, f := range to[port] {
				f.invalidate(wrong)
			}
		}
	}
}

// countAnswers begins to count the packets that arrive at this node from listeners of an
// attempt's probes which start at the server; the returned function holds what these say has
// arrived against it. Of several from one listener nobody knows whose a packet is.
func (n *node) countAnswers(flows []*flow) (hold func()) {
	type answers struct {
		probes []*flow
		before int64
	}
	from := map[int]*answers{}
	for _, f := range flows {
		if n.PacketsSent == nil || !f.probe || !f.spec.FromServer() || f.spec.ClientAt() != n.Role {
			continue
		}
		port := n.firstPort(f)
		if from[port] == nil {
			from[port] = &answers{}
		}
		from[port].probes = append(from[port].probes, f)
	}
	unknown := func(port int, err error) {
		n.log.Warn("packets of probes are not counted: what drivers say has arrived is not held against them", "error", err)
		delete(from, port)
	}
	for port, a := range from {
		var err error
		if a.before, err = n.PacketsSent.Answered(port); err != nil {
			unknown(port, err)
		}
	}
	return func() {
		for port, a := range from {
			now, err := n.PacketsSent.Answered(port)
			if err != nil {
				unknown(port, err)
				continue
			}
			wrong := credible.Answered(arrivedOf(a.probes), now-a.before)
			for _, f := range a.probes {
				f.invalidate(wrong)
			}
		}
	}
}

func payloadsOf(flows []*flow) (p Payloads) {
	for i, f := range flows {
		if p.Sum += f.spec.SizeBytes; i == 0 || f.spec.SizeBytes < p.Least {
			p.Least = f.spec.SizeBytes
		}
	}
	return p
}

// leftFor are the connections to the port of the first listener on a flow's way. A relay
// process beside the client may have opened them before the client did.
func (n *node) leftFor(sent []PacketsTook, f *flow, port int) (out []credible.LeftConnection) {
	opens := n.stations(f)[0].At != n.Role
	for _, s := range sent {
		if s.Port != port {
			continue
		}
		c := credible.LeftConnection{Took: s.Took}
		if opens {
			c.Connecting = s.Connecting
		}
		out = append(out, c)
	}
	return out
}

// firstPort is that of the first listener on a flow's way that is not on this node.
func (n *node) firstPort(f *flow) int {
	for _, s := range n.stations(f) {
		if s.At != n.Role {
			return s.Port
		}
	}
	return 0
}
