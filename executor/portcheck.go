package executor

import (
	"context"
	"maps"
	"slices"

	"linktrial/executor/journal"
	"linktrial/internal/radio"
)

// portFault checks the port that a flow which failed has connected to, where it did at a
// node; empty: nothing blocks it, as far as can be known.
func (c *pathCheck) portFault(ctx context.Context, f *flow, role radio.Role, x *PathExchange) string {
	name, q, ok := c.portOf(f, role, x.Node)
	if !ok {
		return ""
	}
	return c.checkPort(ctx, role, name, q, x.Passed)
}

// portOf is the listener at a node to which a flow from this node connects.
func (c *pathCheck) portOf(f *flow, role radio.Role, s *NodeState) (name journal.ListenerName, q PortQuestion, ok bool) {
	t, at := c.node.sheet.Treatment(f.spec.Treatment), f.spec.ClientAt()
	if at != c.node.Role || t.First(at, f.spec.ServerAt()).At != role {
		return name, q, false
	}
	q.Network = c.networkTo(f, role)
	l, _ := c.listener(f, role, s)
	if l == nil || !l.Up || q.Network == "" {
		return name, q, false
	}
	q.Port = l.Port
	return l.name(), q, true
}

// checkPort keeps what it finds for the next attempt.
func (c *pathCheck) checkPort(ctx context.Context, role radio.Role, name journal.ListenerName, q PortQuestion, passed PathMethods) string {
	method := PathUDP
	if passed&PathUDP == 0 {
		method = PathTCP
	}
	pctx, cancel := context.WithTimeout(ctx, portPatience)
	defer cancel()
	x := c.node.Paths.Port(pctx, PathEnds{c.node.ownAddress(), c.node.addressOf(role)}, method, q, func(x *PortExchange) bool { return x.judge() != portUnknown })
	now := blockedPort{q, x.judge(), x.text(c.node.Role, role, q.Port)}
	c.mu.Lock()
	defer c.mu.Unlock()
	blocked := c.of(role).blocked
	switch before, known := blocked[name]; {
	case now.text == "":
		delete(blocked, name)
	case !known || before.verdict != now.verdict:
		blocked[name] = now
	default: // with the first counts, so that the same is told once
		return before.text
	}
	return now.text
}

// openPorts asks again for the ports of flows that were blocked.
func (c *pathCheck) openPorts(ctx context.Context, role radio.Role, flows []*flow, passed PathMethods) (fault string) {
	c.mu.Lock()
	blocked := maps.Clone(c.of(role).blocked)
	c.mu.Unlock()
	for name, b := range blocked {
		if !slices.ContainsFunc(flows, func(f *flow) bool { return f.spec.Treatment == name.Treatment }) {
			continue
		}
		if fault = c.checkPort(ctx, role, name, b.question, passed); fault != "" || ctx.Err() != nil {
			return fault
		}
	}
	return ""
}
