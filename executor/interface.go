package executor

import (
	"fmt"
	"time"
)

// interfaceSince is what was wrong with the radio's interface since a moment; more is
// closed when something else is.
func (n *node) interfaceSince(at time.Time) (o Outage, more <-chan struct{}) {
	if n.iface == nil {
		return Outage{}, nil
	}
	fault, more := n.iface.Since(at)
	if fault != "" {
		o = Outage{Text: fmt.Sprintf("the radio's interface %s of the %s was not in order: %s", n.device, n.role, fault), Stopped: true}
	}
	return o, more
}
