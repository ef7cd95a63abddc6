package executor

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/backoff"
	"linktrial/internal/radio"
	"linktrial/protocols/contract"
)

// A failure can be the path's: before the leading node counts one, it exchanges packets
// of Linktrial's own with the nodes that the trial needs ([Paths]). What the path cannot
// be blamed for, and what the far node knows nothing of, is the protocol's.

// open is called before an attempt, and returns what is not in order on a path on which no
// packet has passed yet, or that an attempt has found out of order. Of all other paths it
// asks nothing.
func (c *pathCheck) open(ctx context.Context, trial *runsheet.Trial) (fault string) {
	if c.node.Paths == nil {
		return ""
	}
	for _, role := range c.roles(trial) {
		c.mu.Lock()
		k := c.of(role)
		asked := !k.last.IsZero() && !k.suspect
		first := k.last.IsZero()
		if k.asked.IsZero() {
			k.asked = c.node.Clock.Now()
		}
		starting := !k.told && c.node.Clock.Now().Sub(k.asked) < pathAgent
		c.mu.Unlock()
		if asked {
			continue
		}
		flows := newFlows(c.node, trial.Index, 0)
		x := c.examine(ctx, role, c.methodsOf(flows, role), c.question(trial, 0))
		if ctx.Err() != nil {
			return ""
		}
		for _, f := range flows {
			reason, text := c.fault(f, role, &x)
			// Before there was any failure, full packets may be lost by chance.
			if reason == "" || first && reason == journal.ReasonPathBlocked && x.hole() {
				continue
			}
			c.suspect(role)
			return text
		}
		if fault := c.openPorts(ctx, role, flows, x.Passed); fault != "" || ctx.Err() != nil {
			return fault
		}
		if x.Node == nil && starting {
			c.suspect(role)
			return c.silentText(role, &x)
		}
		c.mu.Lock()
		k.suspect = false
		c.mu.Unlock()
	}
	return ""
}

// seen takes note of an attempt that succeeded: its packets passed.
func (c *pathCheck) seen(trial *runsheet.Trial) {
	if c.node.Paths == nil {
		return
	}
	now := c.node.Clock.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, role := range c.roles(trial) {
		c.of(role).last = now
	}
}

func (c *pathCheck) question(trial *runsheet.Trial, since time.Duration) PathQuestion {
	q := PathQuestion{Since: since}
	for _, f := range trial.Carried() {
		if !slices.Contains(q.Treatments, f.Treatment) {
			q.Treatments = append(q.Treatments, f.Treatment)
		}
	}
	return q
}

// ask exchanges packets, and keeps what is learnt of the path.
func (c *pathCheck) ask(ctx context.Context, role radio.Role, methods PathMethods, patience time.Duration, q PathQuestion) PathExchange {
	began := c.node.Clock.Now()
	ectx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	x := c.node.Paths.Exchange(ectx, PathEnds{c.node.ownAddress(), c.node.addressOf(role)}, methods, q)
	now := c.node.Clock.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	k := c.of(role)
	if x.Passed == methods {
		k.took = max(k.took, now.Sub(began))
	}
	if x.Passed != 0 {
		k.passed |= x.Passed
		k.last = now
	}
	if x.Node != nil {
		k.told = true
		c.node.ports.learn(role, x.Node.Listeners)
	}
	return x
}

// examine exchanges packets with a node in the ways that matter, and in all others where
// one of them does not pass.
func (c *pathCheck) examine(ctx context.Context, role radio.Role, needed PathMethods, q PathQuestion) PathExchange {
	x := c.ask(ctx, role, needed, c.patience(role), q)
	if x.Passed&needed == needed && x.Node != nil || ctx.Err() != nil {
		return x
	}
	all := c.ask(ctx, role, pathMethods, pathOthers, q)
	all.Passed, all.Refused = all.Passed|x.Passed, all.Refused|x.Refused
	all.Node = cmp.Or(all.Node, x.Node)
	all.Small, all.SmallBack = all.Small+x.Small, all.SmallBack+x.SmallBack
	all.Full += x.Full
	return all
}

// judge is called when the flows of an attempt have ended. Those that failed are held
// against what the path and the other nodes say.
func (c *pathCheck) judge(ctx context.Context, trial *runsheet.Trial, flows []*flow, began time.Time) {
	var asking []*flow
	for _, f := range flows {
		if f.countsAsFailure() && pathMatters(f.result.Reason) {
			asking = append(asking, f)
		}
	}
	if c.node.Paths == nil || len(asking) == 0 || ctx.Err() != nil {
		return
	}
	for _, role := range c.roles(trial) {
		x := c.examine(ctx, role, c.methodsOf(asking, role), c.question(trial, c.node.Clock.Now().Sub(began)))
		if ctx.Err() != nil {
			return
		}
		for _, f := range asking {
			c.decide(ctx, f, role, &x)
		}
	}
	c.holdInterface(ctx, asking, began)
}

// holdInterface excuses flows that failed where this node's interface was not in order
// until now: what came back right after they had ended, as a packet filter that was
// changed back, was not in their way any more when the path was asked.
func (c *pathCheck) holdInterface(ctx context.Context, asked []*flow, began time.Time) {
	n := c.node
	if n.Interface == nil || !slices.ContainsFunc(asked, (*flow).countsAsFailure) {
		return
	}
	o, _ := n.interfaceSince(began)
	if o.Text == "" {
		backoff.SleepOn(ctx, n.Clock, outageGrace)
		o, _ = n.interfaceSince(began)
	}
	for _, f := range asked {
		if o.Text != "" && f.countsAsFailure() {
			f.excuse(journal.ReasonRadioDown, o.Text)
		}
	}
}

// pathMatters reports whether a failure for a reason can be the path's or the far node's.
// What a driver did wrong by itself, and bytes that arrived, cannot.
func pathMatters(reason string) bool {
	switch contract.Code(reason) {
	case contract.CodeConnectRefused, contract.CodeConnectTimeout, contract.CodeUnreachable, contract.CodeReset, contract.CodeTransferTimeout, contract.CodeInternal:
		return true
	}
	return reason == journal.ReasonExited
}

// methodsOf are those that say whether packets of flows can pass to a node.
func (c *pathCheck) methodsOf(flows []*flow, role radio.Role) PathMethods {
	var out PathMethods
	for _, f := range flows {
		out |= methodsOfNetwork(c.networkTo(f, role))
	}
	return out
}

func methodsOfNetwork(network string) PathMethods {
	switch network {
	case "tcp":
		return PathTCP | PathTCPFull
	case "udp":
		return PathUDP | PathUDPFull
	}
	return PathUDP // of a protocol of its own no exchange is like it
}

// decide changes the outcome of a flow that failed, where it was not the protocol's fault
// by what an exchange with a node has shown.
func (c *pathCheck) decide(ctx context.Context, f *flow, role radio.Role, x *PathExchange) {
	r := &f.result
	if !f.countsAsFailure() {
		return // by another node already
	}
	if reason, text := c.fault(f, role, x); reason != "" {
		f.excuse(reason, text)
		c.suspect(role)
		return
	}
	if r.Reason == journal.ReasonExited || r.Reason == string(contract.CodeInternal) {
		return // the driver's own
	}
	if x.Node == nil {
		if !f.connected {
			f.excuse(journal.ReasonUndetermined, fmt.Sprintf("packets pass to the %s and back (%s), but no agent there says whether its listener is up", role, x.Passed))
		}
		return
	}
	network := c.networkTo(f, role)
	if missing := methodsOfNetwork(network) &^ x.Passed; missing&PathTCPFull != 0 && x.Passed&PathUDP == 0 {
		f.excuse(journal.ReasonUndetermined, fmt.Sprintf("%s has not passed between %s and %s, which may be by chance", missing, c.node.Role, role))
		return
	}
	if text := c.portFault(ctx, f, role, x); text != "" {
		f.excuse(journal.ReasonPathBlocked, text)
		c.suspect(role)
		return
	}
	c.decideByListener(f, role, x.Node)
}

// fault is what of the apparatus an exchange with a node has shown to be out of order, of
// what a flow needs; empty: nothing.
func (c *pathCheck) fault(f *flow, role radio.Role, x *PathExchange) (reason, text string) {
	c.mu.Lock()
	k := *c.of(role)
	c.mu.Unlock()
	down := downReason(c.node.sheet, &c.node.sheet.Trials[f.trial], role)
	missing := methodsOfNetwork(c.networkTo(f, role)) &^ x.Passed
	small := missing & (PathUDP | PathTCP)
	switch {
	case x.Fault != "" && x.Passed == 0:
		return journal.ReasonRadioDown, fmt.Sprintf("the %s cannot send over the radio: %s", c.node.Role, x.Fault)
	case x.Passed == 0:
		return journal.ReasonPathDown, c.downText(role)
	case x.Node == nil && k.told:
		return down, c.silentText(role, x)
	case x.Node != nil && x.Node.Fault != "":
		return down, x.Node.Fault
	case small != 0 && (x.Node != nil || small&k.passed != 0):
		return journal.ReasonPathBlocked, fmt.Sprintf("%s does not pass between %s and %s, while %s does: look for a firewall", missing, c.node.Role, role, x.Passed)
	case x.Node != nil && x.Refused&methodsOfNetwork(c.networkTo(f, role)) != 0:
		return journal.ReasonPathBlocked, fmt.Sprintf("%s is refused at the %s, whose agent answers in another way: look for a firewall", x.Refused, role)
	case missing != 0 && x.hole():
		return journal.ReasonPathBlocked, fmt.Sprintf("full packets do not pass between %s and %s (%d were sent), while all of %d small ones do: look for a hop with a smaller MTU, and for a firewall that drops the ICMP messages about it", c.node.Role, role, x.Full, x.Small)
	case x.Node == nil:
		return "", ""
	}
	if l, what := c.listener(f, role, x.Node); l != nil {
		switch {
		case l.Outage != "":
			return down, what + " " + l.Outage
		case !l.Up && !l.Own:
			return down, what + " is not up: " + cmp.Or(l.Message, "it is not ready yet")
		}
	}
	return "", ""
}

// silentText says that a node's agent does not answer.
func (c *pathCheck) silentText(role radio.Role, x *PathExchange) string {
	return fmt.Sprintf("the agent of the %s does not answer, while packets pass to its node and back (%s)", role, x.Passed)
}

// decideByListener decides by what a node says of its listener, where the path and the
// node are in order.
func (c *pathCheck) decideByListener(f *flow, role radio.Role, s *NodeState) {
	l, what := c.listener(f, role, s)
	r := &f.result
	switch {
	case l == nil:
	case !l.Up && !f.connected:
		e := l.error(what)
		r.Verdict, r.Reason, r.Message = e.verdict(), e.Reason, clip(fmt.Sprintf("%s; the flow ended with %s: %s", e.Message, r.Reason, r.Message))
	case l.Up && !f.connected && f.port != 0 && l.Port != f.port:
		f.excuse(downReason(c.node.sheet, &c.node.sheet.Trials[f.trial], role), fmt.Sprintf("%s is at port %d, and the flow connected to port %d, where it was before", what, l.Port, f.port))
	case l.Up && r.Reason == string(contract.CodeConnectRefused) && l.UpFor > s.Since:
		f.excuse(journal.ReasonUndetermined, fmt.Sprintf("%s has been up at port %d since before the attempt, as its node says", what, l.Port))
	}
}

// downText says between whom no packet passes, and since when.
func (c *pathCheck) downText(role radio.Role) string {
	c.mu.Lock()
	last := c.of(role).last
	c.mu.Unlock()
	n := c.node
	since := "since the run was started here"
	if !last.IsZero() {
		since = "since " + last.UTC().Format("15:04:05") + " UTC, when one passed last"
	}
	return fmt.Sprintf("no packet passes between %s (%s) and %s (%s) %s", n.Role, n.ownAddress(), role, n.addressOf(role), since)
}

func (l *ListenerReport) error(what string) *ListenerError {
	s := listenerState{own: true, gone: l.Code == contract.CodeUnsupported, code: l.Code, crashed: l.Crashed, failure: l.Message}
	return s.ownError(what)
}
