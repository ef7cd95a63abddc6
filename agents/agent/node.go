package agent

import (
	"slices"
	"sync"
	"time"

	"linktrial/agents/identity"
	"linktrial/agents/netif"
	"linktrial/agents/radioonly"
	"linktrial/agents/runner"
	"linktrial/agents/session"
	"linktrial/agents/trust"
	"linktrial/executor/journal"
	"linktrial/internal/wallclock"
)

// node is what the parts of an agent share: its configuration, what it works with, and
// what it knows of the node between runs.
type node struct {
	cfg     Config
	runner  runnable
	session *session.Session // nil: works without an orchestrator
	radio   *radioPoller
	trust   *trust.Keys
	// certificate is nil where the orchestrator is called without encryption.
	certificate *identity.Identity
	incarnation string        // of this start: that of its state folder, a slash, and its own
	slot        chan struct{} // held by the run that executes: listeners of two runs would share ports

	radioOnly *radioonly.Filter // of the node's drivers

	mu      sync.Mutex
	drivers []runner.State
	clock   measured // last of the clock, between runs
	faults  []fault  // reported to the orchestrator with every poll
	refused []fault  // as faults: what was refused of the last answer
	// radioFault, profileFault and labFault are what is wrong with the radio now; empty: nothing.
	radioFault, profileFault, labFault string
	iface                              *netif.Watches // of the run that is executed; nil: none
	waiting                            string         // why the run that this node leads waits; empty: it does not
}

// fault is something on the node that it cannot mend by itself.
type fault struct {
	run  string // that cannot go on because of it; empty: none
	text string // what it is, and what to do
}

// measured is a measurement of the clock, with the moment it was made.
type measured struct {
	journal.ClockOffset
	at time.Time // zero: there is none
}

func (n *node) noteClock(o journal.ClockOffset) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.clock = measured{ClockOffset: o, at: time.Now()}
}

// orchestratorTime is the orchestrator's time of day, whatever this node's clock says;
// false: it was not measured.
func (n *node) orchestratorTime() (time.Time, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return time.Unix(0, int64(wallclock.Steady()+n.clock.Offset+n.clock.Epoch)).UTC(), !n.clock.at.IsZero()
}

// network is which packets a protocol sends, as the manifest of its driver says: "tcp",
// "udp" or "sctp"; empty: there is no such driver.
func (n *node) network(protocol string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, s := range n.drivers {
		if s.Driver.Name == protocol && s.Manifest != nil {
			return s.Manifest.Network
		}
	}
	return ""
}

// mayConfigure reports whether a protocol's driver can have a capability with which the
// node's network is changed: where its manifest names it, or it is a process that nothing
// confines.
func (n *node) mayConfigure(protocol string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, s := range n.drivers {
		if s.Driver.Name != protocol || s.Manifest == nil {
			continue
		}
		named := s.Manifest.Capabilities
		return slices.Contains(named, "CAP_NET_ADMIN") || slices.Contains(named, "CAP_SYS_ADMIN") || s.Dir != "" && n.cfg.Drivers.Unconfined
	}
	return true // it is not known
}
