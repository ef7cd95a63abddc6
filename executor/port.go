package executor

import (
	"cmp"
	"fmt"
	"time"

	"linktrial/internal/radio"
)

// A firewall that drops one port or one IP protocol leaves the plain exchange alone, and
// each failure behind it looks like the protocol's. Where a flow failed while its listener
// is up and the plain exchange passes, the leading node therefore sends packets to that
// very port ([Paths.Port]), which both ends count before and after their own firewalls.
// docs/decisions/port-check.md has why it is done so.

const (
	// portPatience bounds the check of a port: 20 packets and 20 small datagrams on a
	// radio of some kbit/s.
	portPatience = time.Minute
	// enoughAtNode packets, all dropped by a node itself, are no chance: nothing is lost
	// within a node, but a packet that came as the check ended may not be counted yet.
	enoughAtNode = 5
	// enoughOnWay packets, all lost between the nodes, while of as many questions at most
	// maxUnanswered got no answer: with losses that do not depend on the port the
	// probability is below 0.001, even where each question was asked up to four times
	// ((5/21)^(20/4)).
	enoughOnWay   = 20
	maxUnanswered = 4
)

// PortQuestion is a listener's port at the node that is asked.
type PortQuestion struct {
	Network string `json:"network"` // "tcp", "udp" or "sctp", as in a driver's manifest
	Port    int    `json:"port"`
	// Check tells one check of a port from another: each counts from zero.
	Check uint32 `json:"check,omitempty"`
}

// PortCounts are the packets to and from a listener's port that one node has counted.
type PortCounts struct {
	Protocol int `json:"protocol,omitempty"` // of IP, as IANA numbers them
	Arrived  int `json:"arrived,omitempty"`  // at its interface
	Passed   int `json:"passed,omitempty"`   // of those, what its firewall let in
	Sent     int `json:"sent,omitempty"`     // by its agent
	Left     int `json:"left,omitempty"`     // through its interface, of anybody's
	// Fault is why its agent could not send the last one; empty: it could.
	Fault   string `json:"fault,omitempty"`
	Unknown string `json:"unknown,omitempty"` // why nothing can be counted; empty: it can
}

// PortExchange is what both ends have counted.
type PortExchange struct {
	Near PortCounts
	Far  *PortCounts // nil: the far agent does not tell, as one of an older version
	// Questions by the plain exchange at the same time, and those that were answered.
	Asked, Answered int
}

// portVerdict is what counts say of a port.
type portVerdict int

const (
	portUnknown portVerdict = iota
	portPasses
	portNotSent       // this node's packets do not leave it
	portLost          // they are lost on the way
	portNotLetIn      // the far node drops them
	portNotAnswered   // the far node's answers do not leave it
	portAnswersLost   // its answers are lost on the way
	portAnswersNotLet // this node drops its answers
)

// judge returns the first place at which packets do not go on; it is decided only where it
// is no chance.
func (x *PortExchange) judge() portVerdict {
	near, far := &x.Near, x.Far
	if far == nil || far.Unknown != "" || near.Unknown != "" {
		return portUnknown
	}
	onWay := func(sent int) bool {
		return sent >= enoughOnWay && x.Asked >= enoughOnWay && x.Asked-x.Answered <= maxUnanswered
	}
	place := func(enough bool, v portVerdict) portVerdict {
		if enough {
			return v
		}
		return portUnknown
	}
	switch {
	case near.Passed > 0:
		return portPasses
	case near.Left == 0 && far.Arrived == 0:
		return place(near.Sent >= enoughAtNode, portNotSent)
	case far.Arrived == 0:
		return place(onWay(near.Left), portLost)
	case far.Passed == 0:
		return place(far.Arrived >= enoughAtNode, portNotLetIn)
	case far.Left == 0 && near.Arrived == 0:
		return place(far.Sent >= enoughAtNode, portNotAnswered)
	case near.Arrived == 0:
		return place(onWay(far.Left), portAnswersLost)
	}
	return place(near.Arrived >= enoughAtNode, portAnswersNotLet)
}

// protocolWords are of IANA's protocol numbers.
var protocolWords = map[int]string{1: "ICMP", 6: "TCP", 17: "UDP", 33: "DCCP", 132: "SCTP (IP protocol 132)"}

// text says where packets to a port of the far node do not pass; empty: they do, or that
// is not known.
func (x *PortExchange) text(near, far radio.Role, port int) string {
	v := x.judge()
	if v == portUnknown || v == portPasses {
		return ""
	}
	protocol := cmp.Or(protocolWords[x.Far.Protocol], fmt.Sprintf("IP protocol %d", x.Far.Protocol))
	head := fmt.Sprintf("%s to port %d of the %s is blocked: ", protocol, port, far)
	because := func(fault string) string {
		if fault == "" {
			return ""
		}
		return " (" + fault + ")"
	}
	firewall := func(at radio.Role, direction string) string {
		return fmt.Sprintf("; change the firewall of the %s, which must let %s %s at ports 5001 to 5999", at, protocol, direction)
	}
	between := fmt.Sprintf("; look for a firewall or a filter between the two, and whether the radio carries %s", protocol)
	switch v {
	case portNotSent:
		return head + fmt.Sprintf("of %d packets none left the %s%s", x.Near.Sent, near, because(x.Near.Fault)) + firewall(near, "out")
	case portLost:
		return head + fmt.Sprintf("%d packets left the %s, none arrived at the %s, while %d of %d questions at another port were answered", x.Near.Left, near, far, x.Answered, x.Asked) + between
	case portNotLetIn:
		return head + fmt.Sprintf("%d packets arrived at the interface of the %s, which dropped or refused all of them", x.Far.Arrived, far) + firewall(far, "in")
	case portNotAnswered:
		return head + fmt.Sprintf("%d packets arrived at the %s, and of its answers none left it%s", x.Far.Passed, far, because(x.Far.Fault)) + firewall(far, "out")
	case portAnswersLost:
		return head + fmt.Sprintf("%d answers left the %s, none arrived at the %s, while %d of %d questions at another port were answered", x.Far.Left, far, near, x.Answered, x.Asked) + between
	}
	return head + fmt.Sprintf("%d answers arrived at the interface of the %s, which dropped or refused all of them", x.Near.Arrived, near) + firewall(near, "in")
}
