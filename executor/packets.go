package executor

import (
	"slices"
	"time"

	"linktrial/executor/figures"
	"linktrial/executor/journal"
)

// timePackets begins to note when packets leave this node, for an attempt's flows that start
// here; the returned function holds the times of those against them that carry a payload of
// a size, to a listener with no others.
func (n *node) timePackets(flows []*flow) (hold func()) {
	nothing := func() {}
	if n.packets == nil {
		return nothing
	}
	to, payloads := map[int][]*flow{}, map[int]Payloads{}
	for _, f := range flows {
		port := n.firstPort(f)
		to[port] = append(to[port], f)
	}
	for port, all := range to {
		if slices.ContainsFunc(all, func(f *flow) bool {
			return f.probe || f.spec.Duration > 0 || f.spec.From != n.role || f.spec.ClientAt() != n.role
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
	if err := n.packets.Begin(payloads); err != nil {
		unknown(err)
		return nothing
	}
	return func() {
		sent, whole, err := n.packets.Took()
		if err != nil {
			unknown(err)
			return
		}
		for port := range payloads {
			wrong := figures.Left(timesOf(to[port]), n.leftFor(sent, to[port][0], port), whole[port])
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
		if n.packets == nil || !f.probe || !f.spec.FromServer() || f.spec.ClientAt() != n.role {
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
		if a.before, err = n.packets.Answered(port); err != nil {
			unknown(port, err)
		}
	}
	return func() {
		for port, a := range from {
			now, err := n.packets.Answered(port)
			if err != nil {
				unknown(port, err)
				continue
			}
			wrong := figures.Answered(arrivedOf(a.probes), now-a.before)
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
func (n *node) leftFor(sent []PacketsTook, f *flow, port int) (out []figures.LeftConnection) {
	opens := n.stations(f)[0].At != n.role
	for _, s := range sent {
		if s.Port != port {
			continue
		}
		c := figures.LeftConnection{Took: s.Took}
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
		if s.At != n.role {
			return s.Port
		}
	}
	return 0
}

// timesPackets reports whether the packets of the listener's transfers are timed.
func (l *listener) timesPackets() bool { return l.node.arrivals != nil && !l.Treatment.Probe }

// radioPort is that of the first listener on this node of the treatment's, which gets the
// transfers' packets from the radio: a relay process beside the own one, or this.
func (l *listener) radioPort() int {
	for i := range l.Treatment.Via {
		if v := &l.Treatment.Via[i]; v.At == l.node.role {
			return v.Port
		}
	}
	return l.port
}

// expectPackets begins to time the packets of the listener's transfers.
func (l *listener) expectPackets() {
	if !l.timesPackets() {
		return
	}
	if err := l.node.arrivals.Listen(l.port, l.node.sheet.SizeTo(l.Treatment.Name)); err != nil {
		l.untimed(err)
	}
}

// packetsTook is how long the packets of a transfer that has ended took; 0: it is not known,
// as of transfers that ran at once, whose connections cannot be told apart.
func (s *server) packetsTook() time.Duration {
	took := s.listener.packetsTook()
	if s.several {
		took = 0
	}
	s.several = s.several && len(s.active) > 0
	return took
}

// packetsTook is the least time of the connections to the listener that have carried a
// payload since it was asked last; 0: it is not known.
func (l *listener) packetsTook() time.Duration {
	if !l.timesPackets() || l.Via != nil { // the treatment's own listener tells how a transfer ended
		return 0
	}
	took, err := l.node.arrivals.Ended(l.radioPort())
	if err != nil {
		l.untimed(err)
	}
	return took
}

func (l *listener) untimed(err error) {
	l.node.log.Warn("packets of transfers are not timed: drivers' times are not held against them", "treatment", l.Treatment.Name, "error", err)
}

// unclaimed is how many packets to a probe's listener have arrived over the radio that no
// probe has reported yet, at the most.
func (s *server) unclaimed() (packets int64, known bool) {
	l := s.listener
	if l.node.arrivals == nil || !l.Treatment.Probe {
		return 0, false
	}
	passed, err := l.node.arrivals.Passed(l.radioPort())
	if err != nil {
		l.node.log.Warn("packets of probes are not counted: what drivers say has arrived is not held against them", "treatment", l.Treatment.Name, "error", err)
		return 0, false
	}
	return passed - s.claimed, true
}

// holdProbe holds what a probe that has ended says has arrived against the packets that
// did. Of several at once each may have any of them. What came while no probe ran is
// nobody's only when the next one has ended: one that begins may have sent before it says so.
// The packets of one that starts here arrive at the client, whose node counts them.
func (s *server) holdProbe(r *journal.Received) {
	if r.Result == nil || r.Result.Probe == nil {
		return
	}
	packets, known := s.unclaimed()
	if !known {
		return
	}
	here := int64(0)
	if !s.listener.startsHere(r.Transfer) {
		here = r.Result.Probe.Received
	}
	if f := figures.Arrived(here, packets); f != nil {
		r.Reason, r.Message = f.Reason, clip(f.Message)
	}
	passed := s.claimed + packets
	s.claimed += min(here, packets)
	if len(s.active) == 0 {
		s.claimed, s.idle = max(s.claimed, s.idle), passed
	}
}

// startsHere reports whether a transfer is a probe whose packets this node sends.
func (l *listener) startsHere(transfer string) bool {
	at, ok := l.transfers.place(transfer)
	return ok && l.node.sheet.Trials[at.trial].Carried()[at.flow].FromServer()
}
