package executor

import (
	"time"

	"linktrial/executor/figures"
	"linktrial/executor/journal"
)

// timePackets begins to note when packets leave this node, for an attempt's flows that start
// here; the returned function holds the times of those that have a listener of their own and
// carry a payload of a size against them. Flows to one listener cannot be told apart.
func (n *node) timePackets(flows []*flow) (hold func()) {
	nothing := func() {}
	if n.packets == nil {
		return nothing
	}
	to, sizes := map[int]*flow{}, map[int]int64{}
	for _, f := range flows {
		port := n.firstPort(f)
		if _, several := to[port]; several || f.probe || f.spec.Duration > 0 || f.spec.From != n.role || f.spec.ClientAt() != n.role {
			to[port] = nil
			delete(sizes, port)
			continue
		}
		to[port], sizes[port] = f, f.spec.SizeBytes
	}
	if len(sizes) == 0 {
		return nothing
	}
	unknown := func(err error) {
		n.log.Warn("packets of an attempt are not timed: the drivers' times are not held against them", "error", err)
	}
	if err := n.packets.Begin(sizes); err != nil {
		unknown(err)
		return nothing
	}
	return func() {
		sent, err := n.packets.Took()
		if err != nil {
			unknown(err)
			return
		}
		for port, f := range to {
			if f != nil && f.result.Verdict == journal.Succeeded {
				x := f.figures()
				f.invalidate(figures.Left(&x, leastTook(sent, port)))
			}
		}
	}
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

// leastTook is the shortest time in which a connection to a listener took as many bytes as
// the payload has; 0: none did. What an attempt before has left behind may be one.
func leastTook(sent []PacketsTook, port int) (least time.Duration) {
	for _, s := range sent {
		if s.Port == port && s.Took > 0 && (least == 0 || s.Took < least) {
			least = s.Took
		}
	}
	return least
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

// packetsTook is how long the packets of a transfer that has ended took; 0: it is not known.
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
func (s *server) holdProbe(r *journal.Received) {
	if r.Result == nil || r.Result.Probe == nil {
		return
	}
	packets, known := s.unclaimed()
	if !known {
		return
	}
	if f := figures.Arrived(r.Result.Probe, packets); f != nil {
		r.Reason, r.Message = f.Reason, clip(f.Message)
	}
	passed := s.claimed + packets
	s.claimed += min(r.Result.Probe.Received, packets)
	if len(s.active) == 0 {
		s.claimed, s.idle = max(s.claimed, s.idle), passed
	}
}
