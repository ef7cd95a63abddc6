package fleet

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/executor/runsheet"
	"linktrial/internal/checkkind"
	"linktrial/internal/radio"
	"linktrial/internal/unit"
	"linktrial/protocols/contract"
)

// Short names for the states of a check.
const (
	stateNotChecked = linktrialv1.CheckState_CHECK_STATE_UNSPECIFIED
	stateOK         = linktrialv1.CheckState_CHECK_STATE_OK
	stateWarning    = linktrialv1.CheckState_CHECK_STATE_WARNING
	stateFailed     = linktrialv1.CheckState_CHECK_STATE_FAILED
	stateUnknown    = linktrialv1.CheckState_CHECK_STATE_UNKNOWN
)

func treatmentCheck(t *runsheet.Treatment, node string) *linktrialv1.Check {
	expected := "a small transfer of it passes"
	if t.Probe {
		expected = "its packets pass both ways"
	}
	return &linktrialv1.Check{Node: node, Kind: checkkind.Treatment.Name, Expected: expected,
		Meaning: "every trial of the treatment would fail in the same way, and would say nothing of the protocol"}
}

// notCarried is the check of a treatment whose transfer was not tried.
func notCarried(t *runsheet.Treatment, node, why, remedy string) *linktrialv1.Check {
	c := treatmentCheck(t, node)
	c.State, c.Found, c.Remedy = stateNotChecked, t.Name+": not carried: "+why, remedy
	c.Meaning = "it is not known whether the treatment works between these nodes"
	return c
}

// checkWorks reports whether a treatment was found to work; known is false where it was
// not found out.
func checkWorks(c *linktrialv1.Check) (works, known bool) {
	return c.State == stateOK || c.State == stateWarning, c.State != stateNotChecked && c.State != stateUnknown
}

// verdict is what is found of a treatment.
type verdict struct {
	state         linktrialv1.CheckState
	found, remedy string
}

// judge makes a treatment's check of what its nodes have seen of its transfer.
func (x *transfers) judge(t *runsheet.Treatment, reports map[string]*transferReport) *linktrialv1.Check {
	check := treatmentCheck(t, x.nodes[radio.RoleClient].Name)
	if n := x.nodes[radio.RoleServer]; n != nil {
		check.Peer = n.Name
	}
	e := &evidence{nodes: map[radio.Role]string{}, seen: map[radio.Role]*linktrialv1.TransferSeen{}, failures: map[radio.Role]string{}}
	for role, n := range x.nodes {
		e.nodes[role] = n.Name
		if r := reports[n.Name]; r != nil {
			e.seen[role], e.failures[role] = r.seen[t.Name], r.failure
		}
	}
	v := e.judge(t)
	check.State, check.Found, check.Remedy = v.state, t.Name+": "+v.found, v.remedy
	if v.state == stateUnknown {
		check.Meaning = "it is not known whether the treatment works between these nodes"
	}
	return check
}

// evidence is what each node has seen of one treatment's transfer.
type evidence struct {
	nodes    map[radio.Role]string
	seen     map[radio.Role]*linktrialv1.TransferSeen
	failures map[radio.Role]string
}

func (e *evidence) judge(t *runsheet.Treatment) verdict {
	if v := e.listeners(); v != nil {
		return *v
	}
	flows := e.seen[radio.RoleClient].GetFlows()
	if len(flows) == 0 {
		for _, role := range radio.Roles {
			if why := e.failures[role]; why != "" {
				return verdict{stateUnknown, fmt.Sprintf("not carried: %s: %s", e.nodes[role], why), "mend what is said, and start the preflight again"}
			}
		}
		return verdict{stateUnknown, "not carried: " + cmp.Or(e.nodes[radio.RoleClient], "the client") + " did not report it within its time", "start the preflight again, and see the agent's log on the node"}
	}
	if k := slices.IndexFunc(flows, func(f *linktrialv1.FlowSeen) bool { return !passed(f) }); k >= 0 {
		return e.failed(t, flows[k])
	}
	return verdict{state: stateOK, found: "works: " + e.carried(flows)}
}

// passed reports whether a transfer was carried, or packets of a probe arrived.
func passed(f *linktrialv1.FlowSeen) bool { return f.Carried && (!f.Probe || f.Bytes > 0) }

func (e *evidence) carried(flows []*linktrialv1.FlowSeen) string {
	var parts []string
	for _, f := range flows {
		if f.Probe {
			parts = append(parts, fmt.Sprintf("%d packets from %s to %s", f.Bytes, e.node(radio.Role(f.From)), e.node(radio.Role(f.To))))
		} else {
			parts = append(parts, fmt.Sprintf("%s in %s", unit.FormatBytes(f.Bytes), formatSeconds(f.Seconds)))
		}
	}
	out := strings.Join(parts, ", ")
	if s := e.seen[radio.RoleClient].GetListeners(); len(s) > 0 {
		out += " over " + portWords(s[0])
	}
	return out
}

// formatSeconds has three significant digits.
func formatSeconds(s float64) string {
	if s < 1 {
		return fmt.Sprintf("%.3g ms", s*1e3)
	}
	return fmt.Sprintf("%.3g s", s)
}

func (e *evidence) node(role radio.Role) string { return cmp.Or(e.nodes[role], "the "+string(role)) }

// listeners finds one that was not ready; nil: all were, as far as the nodes have said.
func (e *evidence) listeners() *verdict {
	for _, role := range radio.Roles {
		for _, l := range e.seen[role].GetListeners() {
			if !l.Here || l.Ready {
				continue
			}
			if refuses(l.Code) {
				return &verdict{stateFailed, fmt.Sprintf("not supported: the driver on %s refuses: %s", e.node(role), l.Message), refusedRemedy}
			}
			return &verdict{stateFailed, fmt.Sprintf("not ready: nothing listens on %s at port %d: %s", e.node(role), l.Port, cmp.Or(l.Message, "its listener is not up")),
				fmt.Sprintf("end the program that holds the port ('ss -lntup sport = %d' on %s names it), or see the agent's log there", l.Port, e.node(role))}
		}
	}
	return nil
}

const refusedRemedy = "give the nodes what the driver asks for, change what the plan asks of it, or leave the treatment out"

func refuses(code string) bool {
	return code == string(contract.CodeUnsupported) || code == string(contract.CodeBadParameters)
}

// failed judges a transfer that was not carried, or a probe of which nothing arrived.
func (e *evidence) failed(t *runsheet.Treatment, f *linktrialv1.FlowSeen) verdict {
	said := strings.TrimSuffix(f.Reason+": "+f.Message, ": ")
	switch {
	case refuses(f.Reason):
		return verdict{stateFailed, fmt.Sprintf("not supported: the driver on %s refuses: %s", e.node(radio.RoleClient), f.Message), refusedRemedy}
	case f.Invalid:
		return verdict{stateUnknown, "not carried, for a fault of the apparatus: " + said, "mend what is said, and start the preflight again"}
	case f.Connected && !f.Probe && f.Bytes > 0 && f.Reason == string(contract.CodeTransferTimeout):
		return verdict{stateWarning, fmt.Sprintf("works, and is slow: %s of %s were acknowledged before the time was up", unit.FormatBytes(f.Bytes), unit.FormatBytes(f.SizeBytes)),
			"see antennas, power and distance, and the limits of the plan; where the link is meant to be that slow, start the run anyway"}
	}
	b := e.breaks(f)
	if b == nil {
		words := "fails: " + said
		if f.Probe && f.Carried {
			words = fmt.Sprintf("fails: no packet from %s to %s arrived", e.node(radio.Role(f.From)), e.node(radio.Role(f.To)))
		}
		return verdict{stateFailed, words + e.passedWords(), "see the logs of both agents; where the link is that bad, start the run anyway"}
	}
	at := "before a connection was made"
	switch {
	case f.Probe && f.Carried:
		at = fmt.Sprintf("no packet from %s to %s arrived", e.node(radio.Role(f.From)), e.node(radio.Role(f.To)))
	case f.Connected:
		at = "after the connection was made (" + said + ")"
	}
	return verdict{stateFailed, fmt.Sprintf("blocked, %s: %s", at, b.found), b.remedy}
}

// passedWords is what the nodes' counters say where they name no place.
func (e *evidence) passedWords() string {
	l := first(e.seen[radio.RoleClient])
	if l == nil || l.Uncounted {
		return "; packets were not counted"
	}
	return fmt.Sprintf("; %d packets to %s left %s, %d came back", l.ToSent, portWords(l), e.node(radio.RoleClient), l.FromReceived)
}

func first(t *linktrialv1.TransferSeen) *linktrialv1.ListenerSeen {
	if l := t.GetListeners(); len(l) > 0 {
		return l[0]
	}
	return nil
}

// breaks finds the first place on the way of a flow's packets that they do not pass, hop
// by hop from listener to listener; nil: the counters name none.
func (e *evidence) breaks(f *linktrialv1.FlowSeen) *verdict {
	from := radio.RoleClient
	for i, l := range e.seen[radio.RoleClient].GetListeners() {
		to := radio.Role(l.At)
		if to != from {
			h := hop{evidence: e, from: from, to: to, index: i}
			if v := h.breaks(f); v != nil {
				return v
			}
		}
		from = to
	}
	return nil
}

// hop is the way from one node to the listener at another.
type hop struct {
	*evidence
	from, to radio.Role
	index    int // of the listener
}

// at is what a node has counted of the hop's packets; nil: it was not there or could not.
func (h *hop) at(role radio.Role) *linktrialv1.ListenerSeen {
	ls := h.seen[role].GetListeners()
	if h.index >= len(ls) || ls[h.index].Uncounted {
		return nil
	}
	return ls[h.index]
}

func (h *hop) breaks(f *linktrialv1.FlowSeen) *verdict {
	sender, receiver := h.at(h.from), h.at(h.to)
	if sender == nil || receiver == nil {
		return nil
	}
	what := portWords(receiver)
	if receiver.IpProtocol == 0 {
		what = portWords(sender)
	}
	blocked := func(found, remedy string) *verdict { return &verdict{stateFailed, found, remedy} }
	between := "look for a firewall or a filter between the nodes (in the radio, in a router), and whether the radio carries " + protocolWord(max(sender.IpProtocol, receiver.IpProtocol)) + " at all"
	switch {
	case sender.ToSent == 0:
		return blocked(fmt.Sprintf("no packet to %s left %s", portWords(receiver), h.node(h.from)),
			fmt.Sprintf("look for a rule on %s that drops what it sends ('nft list ruleset'), and at its route ('ip route get ADDRESS')", h.node(h.from)))
	case receiver.ToReceived == 0:
		if v := h.forwarded(what, h.from, h.to, func(l *linktrialv1.ListenerSeen) (in, out int64) { return l.ToReceived, l.ToSent }); v != nil {
			return v
		}
		return blocked(fmt.Sprintf("%s to %s left %s, none arrived at %s", packets(sender.ToSent), what, h.node(h.from), h.node(h.to)), between)
	case receiver.FromSent == 0:
		return blocked(fmt.Sprintf("%s to %s arrived at %s, and nothing there answered", packets(receiver.ToReceived), what, h.node(h.to)),
			fmt.Sprintf("let them in on %s: a firewall there drops them before the driver ('nft list ruleset'); the ports of plans are %d to %d", h.node(h.to), runsheet.FirstPort, runsheet.LastPort))
	case sender.FromReceived == 0:
		if v := h.forwarded(what, h.to, h.from, func(l *linktrialv1.ListenerSeen) (in, out int64) { return l.FromReceived, l.FromSent }); v != nil {
			return v
		}
		return blocked(fmt.Sprintf("%s from %s left %s as answers, none arrived at %s", packets(receiver.FromSent), what, h.node(h.to), h.node(h.from)), between+"; see the route from "+h.node(h.to)+" back to "+h.node(h.from))
	case !f.Connected && !f.Carried:
		return blocked(fmt.Sprintf("%s to %s arrived at %s and %s came back to %s, and no connection was made",
			packets(receiver.ToReceived), what, h.node(h.to), packets(sender.FromReceived), h.node(h.from)),
			fmt.Sprintf("look for a firewall on %s that drops the answers ('nft list ruleset'), or one that lets only small packets or whole ones pass", h.node(h.from)))
	case f.Connected && !f.Carried && sender.ToSent > receiver.ToReceived && h.index == 0:
		return blocked(fmt.Sprintf("%s to %s left %s, %d arrived at %s%s", packets(sender.ToSent), what, h.node(h.from), receiver.ToReceived, h.node(h.to), fragmentWords(sender, receiver)),
			"small packets pass and larger ones do not: see the check of the packet size (mtu), and let fragments and ICMP's 'packet too big' pass")
	}
	return nil
}

// forwarded finds out whether a relay between two nodes has stopped what went through
// it; passed picks what the relay has received and sent of it.
func (h *hop) forwarded(what string, from, to radio.Role, passed func(*linktrialv1.ListenerSeen) (in, out int64)) *verdict {
	if h.from == radio.RoleRelay || h.to == radio.RoleRelay || h.nodes[radio.RoleRelay] == "" {
		return nil
	}
	l := h.at(radio.RoleRelay)
	if l == nil {
		return nil
	}
	relay := h.node(radio.RoleRelay)
	in, out := passed(l)
	switch {
	case in == 0:
		return &verdict{stateFailed, fmt.Sprintf("packets for %s left %s, none arrived at %s", what, h.node(from), relay),
			fmt.Sprintf("see the route on %s towards %s, and whether something between %s and %s drops them", h.node(from), h.node(to), h.node(from), relay)}
	case out == 0:
		return &verdict{stateFailed, fmt.Sprintf("%s for %s arrived at %s, none left it towards %s", packets(in), what, relay, h.node(to)),
			fmt.Sprintf("let %s forward them: 'sysctl net.ipv4.ip_forward=1' (IPv6: net.ipv6.conf.all.forwarding=1), its routes, and its firewall's forward chain", relay)}
	}
	return &verdict{stateFailed, fmt.Sprintf("%s for %s left %s, none arrived at %s", packets(out), what, relay, h.node(to)),
		fmt.Sprintf("look for what drops them between %s and %s", relay, h.node(to))}
}

func packets(n int64) string {
	if n == 1 {
		return "1 packet"
	}
	return fmt.Sprintf("%d packets", n)
}

func fragmentWords(a, b *linktrialv1.ListenerSeen) string {
	if a.Fragments == 0 {
		return ""
	}
	return fmt.Sprintf(" (%d and %d of them fragments)", a.Fragments, b.Fragments)
}

// portWords names a port with the protocol that was seen.
func portWords(l *linktrialv1.ListenerSeen) string {
	if l.IpProtocol == 0 {
		return fmt.Sprintf("port %d", l.Port)
	}
	return fmt.Sprintf("%s port %d", protocolWord(l.IpProtocol), l.Port)
}

// protocolWord names an IP protocol (IANA's numbers).
func protocolWord(number int32) string {
	switch number {
	case 0:
		return "this protocol"
	case 6:
		return "TCP"
	case 17:
		return "UDP"
	case 33:
		return "DCCP (IP protocol 33)"
	case 132:
		return "SCTP (IP protocol 132)"
	case 136:
		return "UDP-Lite (IP protocol 136)"
	}
	return fmt.Sprintf("IP protocol %d", number)
}
