package executor

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"linktrial/executor/journal"
)

// interfaceSince is what was wrong with the interfaces of the node's radios since a
// moment; more is closed when something else is.
func (n *node) interfaceSince(at time.Time) (o Outage, more <-chan struct{}) {
	if n.Interface == nil {
		return Outage{}, nil
	}
	faults, more := n.Interface.Since(at)
	if len(faults) > 0 {
		o = Outage{Text: n.notInOrder(faults), Stopped: true}
	}
	return o, more
}

// brokenSince is the same without what was undone, for processes that have run since then.
func (n *node) brokenSince(at time.Time) (fault string, more <-chan struct{}) {
	if n.Interface == nil {
		return "", nil
	}
	faults, more := n.Interface.Since(at)
	return n.notInOrder(slices.DeleteFunc(faults, func(f InterfaceFault) bool { return f.Undone })), more
}

// interfaceNow is what is wrong now, empty for nothing; changed is closed when that is
// something else, or may be.
func (n *node) interfaceNow() (fault string, changed <-chan struct{}) {
	faults, changed := n.Interface.State()
	return n.notInOrder(faults), changed
}

// notInOrder says what is wrong with which interface; empty: nothing.
func (n *node) notInOrder(faults []InterfaceFault) string {
	out := make([]string, len(faults))
	for i, f := range faults {
		out[i] = fmt.Sprintf("the radio's interface %s of the %s was not in order: %s", f.Device, n.Role, f.Text)
	}
	return strings.Join(out, "; ")
}

// recordInterface records when the interface of one of the node's radios is not in order,
// and when it is again, from now on until ctx ends; wait returns when all of it is in the
// journal. The leading node does not learn it from every node: not of one that only
// forwards packets, and on real radios and in-band of no other one.
func (n *node) recordInterface(ctx context.Context) (wait func()) {
	if n.Interface == nil {
		return func() {}
	}
	at := n.Clock.Now()
	var recording sync.WaitGroup
	recording.Go(func() {
		known := map[string]string{} // by device
		for {
			now := n.Clock.Now()
			faults, changed := n.Interface.State()
			since, _ := n.Interface.Since(at)
			n.recordInterfaces(known, faults, since)
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

// recordInterfaces records by what the faults of the interfaces differ from those that the
// journal has, and changes these. Of those since the last look some are over by now.
func (n *node) recordInterfaces(known map[string]string, now, since []InterfaceFault) {
	broken := map[string]bool{}
	for _, f := range now {
		broken[f.Device] = true
		if f.Text != known[f.Device] {
			n.recordInterfaceState(f)
			known[f.Device] = f.Text
		}
	}
	for _, f := range since {
		if known[f.Device] == "" { // it was wrong for so short a time that it is not any more
			n.recordInterfaceState(f)
			n.recordInterfaceState(InterfaceFault{Device: f.Device})
		}
	}
	for _, device := range slices.Sorted(maps.Keys(known)) {
		if !broken[device] {
			n.recordInterfaceState(InterfaceFault{Device: device})
			delete(known, device)
		}
	}
}

func (n *node) recordInterfaceState(f InterfaceFault) {
	t := journal.TypeInterfaceReady
	if f.Text != "" {
		t = journal.TypeInterfaceFailed
		n.log.Warn("the radio's interface is not in order", "interface", f.Device, "fault", f.Text)
	}
	n.record.append(t, journal.RadioInterface{Device: f.Device, Forwards: n.Forwards, Fault: clip(f.Text)})
	n.record.syncNow()
}
