package executor

import (
	"time"

	"linktrial/executor/credible"
	"linktrial/executor/journal"
)

// arrivedPackets is the packets that have arrived for the transfers of one process of a listener.
type arrivedPackets struct {
	listener *listener
	active   map[string]bool // transfers of the process
	several  bool            // more than one of them ran at once, and one still does
	claimed  int64           // packets to a probe's listener that count for none that ends later
	idle     int64           // of all such packets, how many there were when no probe ran last
}

// timesPackets reports whether the packets of the listener's transfers are timed.
func (l *listener) timesPackets() bool { return l.node.PacketsArrived != nil && !l.Treatment.Probe }

// radioPort is that of the first listener on this node of the treatment's, which gets the
// transfers' packets from the radio: a relay process beside the own one, or this.
func (l *listener) radioPort() int {
	for i := range l.Treatment.Via {
		if v := &l.Treatment.Via[i]; v.At == l.node.Role {
			return v.Port
		}
	}
	return l.port
}

// expectPackets begins to time the packets of the listener's transfers.
func (a *arrivedPackets) expectPackets() {
	l := a.listener
	if !l.timesPackets() {
		return
	}
	if err := l.node.PacketsArrived.Listen(l.port, l.node.sheet.SizeTo(l.Treatment.Name)); err != nil {
		l.untimed(err)
	}
}

// packetsTook is the least time of the connections to the listener that have carried a
// payload since it was asked last; 0: it is not known, as of transfers that ran at once,
// whose connections cannot be told apart.
func (a *arrivedPackets) packetsTook() time.Duration {
	l, several := a.listener, a.several
	a.several = several && len(a.active) > 0
	if !l.timesPackets() || l.Via != nil { // the treatment's own listener tells how a transfer ended
		return 0
	}
	took, err := l.node.PacketsArrived.Ended(l.radioPort())
	if err != nil {
		l.untimed(err)
	}
	if several {
		return 0
	}
	return took
}

func (l *listener) untimed(err error) {
	l.node.log.Warn("packets of transfers are not timed: drivers' times are not held against them", "treatment", l.Treatment.Name, "error", err)
}

// unclaimed is how many packets to a probe's listener have arrived over the radio that no
// probe has reported yet, at the most.
func (a *arrivedPackets) unclaimed() (packets int64, known bool) {
	l := a.listener
	if l.node.PacketsArrived == nil || !l.Treatment.Probe {
		return 0, false
	}
	passed, err := l.node.PacketsArrived.Passed(l.radioPort())
	if err != nil {
		l.node.log.Warn("packets of probes are not counted: what drivers say has arrived is not held against them", "treatment", l.Treatment.Name, "error", err)
		return 0, false
	}
	return passed - a.claimed, true
}

// holdProbe holds what a probe that has ended says has arrived against the packets that
// did. Of several at once each may have any of them. What came while no probe ran is
// nobody's only when the next one has ended: one that begins may have sent before it says so.
// The packets of one that starts here arrive at the client, whose node counts them.
func (a *arrivedPackets) holdProbe(r *journal.Received) {
	if r.Result == nil || r.Result.Probe == nil {
		return
	}
	packets, known := a.unclaimed()
	if !known {
		return
	}
	here := int64(0)
	if !a.listener.startsHere(r.Transfer) {
		here = r.Result.Probe.Received
	}
	if f := credible.Arrived(here, packets); f != nil {
		r.Reason, r.Message = f.Reason, clip(f.Message)
	}
	passed := a.claimed + packets
	a.claimed += min(here, packets)
	if len(a.active) == 0 {
		a.claimed, a.idle = max(a.claimed, a.idle), passed
	}
}

// startsHere reports whether a transfer is a probe whose packets this node sends.
func (l *listener) startsHere(transfer string) bool {
	at, ok := l.transfers.place(transfer)
	return ok && l.node.sheet.Trials[at.trial].Carried()[at.flow].FromServer()
}
