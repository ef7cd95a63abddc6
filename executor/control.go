package executor

import (
	"fmt"

	"linktrial/executor/journal"
)

// countControl begins to count control traffic; the returned function ends it. Nil: it
// was not counted.
func (n *node) countControl() (end func() *journal.ControlTraffic) {
	if n.Control == nil {
		return func() *journal.ControlTraffic { return nil }
	}
	_, before := n.Control.Take()
	return func() *journal.ControlTraffic {
		c, err := n.Control.Take()
		if err != nil || before != nil {
			n.log.Warn("control traffic could not be counted", "error", err, "before", before)
			return nil
		}
		return &c
	}
}

// controlText is why an attempt is invalid during which control packets passed: they
// shared the radio with its flows.
func controlText(c *journal.ControlTraffic) string {
	return fmt.Sprintf("control packets passed between this node and the orchestrator during the attempt, of which a run with in-band control has none: %d with %d B", c.Packets, c.Bytes)
}
