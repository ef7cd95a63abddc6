package executor

import (
	"context"
	"fmt"
	"sync"
	"time"

	"linktrial/executor/journal"
)

// interfaceSince is what was wrong with the radio's interface since a moment; more is
// closed when something else is.
func (n *node) interfaceSince(at time.Time) (o Outage, more <-chan struct{}) {
	if n.iface == nil {
		return Outage{}, nil
	}
	fault, more := n.iface.Since(at)
	if fault != "" {
		o = Outage{Text: n.notInOrder(fault), Stopped: true}
	}
	return o, more
}

func (n *node) notInOrder(fault string) string {
	return fmt.Sprintf("the radio's interface %s of the %s was not in order: %s", n.device, n.role, fault)
}

// recordInterface records when the radio's interface on this node is not in order, and
// when it is again, from now on until ctx ends; wait returns when all of it is in the
// journal. The leading node does not learn it from every node: not of one that only
// forwards packets, and on real radios and in-band of no other one.
func (n *node) recordInterface(ctx context.Context) (wait func()) {
	if n.iface == nil {
		return func() {}
	}
	at := n.clock.Now()
	var recording sync.WaitGroup
	recording.Go(func() {
		known := ""
		for {
			now := n.clock.Now()
			fault, changed := n.iface.State()
			// What was wrong for so short a time that it is not any more.
			if brief, _ := n.iface.Since(at); known == "" && fault == "" && brief != "" {
				n.recordInterfaceState(brief)
				n.recordInterfaceState("")
			}
			if fault != known {
				n.recordInterfaceState(fault)
				known = fault
			}
			at = now
			select {
			case <-changed:
			case <-ctx.Done():
				return
			}
		}
	})
	return recording.Wait
}

func (n *node) recordInterfaceState(fault string) {
	t := journal.TypeInterfaceReady
	if fault != "" {
		t = journal.TypeInterfaceFailed
		n.log.Warn("the radio's interface is not in order", "interface", n.device, "fault", fault)
	}
	n.record.append(t, journal.RadioInterface{Device: n.device, Forwards: n.forwards, Fault: clip(fault)})
	n.record.syncNow()
}
