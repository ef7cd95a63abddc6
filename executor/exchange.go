package executor

import (
	"context"
	"strings"
	"time"

	"linktrial/executor/journal"
	"linktrial/internal/radio"
	"linktrial/protocols/contract"
)

// PathMethods is a set of ways to exchange packets with another node.
type PathMethods uint8

// The ways. Those in full have packets as large as the interface's MTU, or as what is
// known of the path's, in both directions.
const (
	PathUDP PathMethods = 1 << iota
	PathUDPFull
	PathTCP
	PathTCPFull
	PathICMP

	pathMethods = PathUDP | PathUDPFull | PathTCP | PathTCPFull | PathICMP
)

var pathWords = []string{"UDP", "UDP in full packets", "TCP", "TCP in full packets", "ICMP"}

func (m PathMethods) String() string {
	var out []string
	for i, word := range pathWords {
		if m&(1<<i) != 0 {
			out = append(out, word)
		}
	}
	return strings.Join(out, ", ")
}

// Paths exchanges packets of Linktrial's own with other nodes over the radio.
type Paths interface {
	// Exchange exchanges packets with the node at an address, in all of the given ways at once,
	// and sends again what was lost, until each has passed and the node has answered, or
	// ctx ends.
	Exchange(ctx context.Context, ends PathEnds, methods PathMethods, q PathQuestion) PathExchange
	// Port sends packets like the first ones of a connection to a listener's port, to
	// which the far agent has answers sent from there, asks that agent by the method after
	// each what it has counted, and returns when enough does, or ctx ends.
	Port(ctx context.Context, ends PathEnds, method PathMethods, q PortQuestion, enough func(*PortExchange) bool) PortExchange
}

// PathEnds are the radio addresses of both ends of a path.
type PathEnds struct{ From, To string }

// PathExchange is what an exchange with a node has shown.
type PathExchange struct {
	// Passed are the ways in which a packet went there and one came back, be it a refusal.
	Passed PathMethods
	// Refused are those of them in which nothing but a refusal came back.
	Refused PathMethods
	Fault   string     // why this node could not send; empty: it could
	Node    *NodeState // what the node says of itself; nil: its agent did not answer
	// Small datagrams that were sent long enough before the end, those of them that were
	// answered, and full ones that were sent.
	Small, SmallBack, Full int
}

// enoughSmall small datagrams, all answered, and enoughFull full ones, of which none is,
// are no chance: on a radio whose bits are lost independently of each other, full packets
// are about 16 times as long, and the probability is below 0.005 at every rate of losses.
const (
	enoughSmall = 20
	enoughFull  = 20
)

// hole reports whether full packets do not pass, on a path that loses no small ones.
func (x *PathExchange) hole() bool {
	return x.Passed&PathUDP != 0 && x.Passed&PathUDPFull == 0 && x.Small >= enoughSmall && x.SmallBack == x.Small && x.Full >= enoughFull
}

// PathQuestion is what the leading node asks another one in an exchange.
type PathQuestion struct {
	Since      time.Duration `json:"since_ns,omitempty"`   // what was not in order from so long ago on
	Treatments []string      `json:"treatments,omitempty"` // whose listeners
	Port       *PortQuestion `json:"port,omitempty"`       // a port to count at; nil: none
}

// NodeState is what a node knows of itself.
type NodeState struct {
	Since time.Duration `json:"since_ns,omitempty"` // of the question
	// Fault is what was wrong with its radio's interface, or with its agent.
	Fault string `json:"fault,omitempty"`
	// Listeners are those that were asked for, and those that have another port than the
	// sheet says.
	Listeners []ListenerReport `json:"listeners,omitempty"`
	Port      *PortCounts      `json:"port,omitempty"` // of the port that was asked for
}

// ListenerReport is one listener as its node knows it.
type ListenerReport struct {
	Treatment string        `json:"treatment"`
	At        radio.Role    `json:"at,omitempty"` // of a relay process, as in the journal
	Port      int           `json:"port"`
	Up        bool          `json:"up,omitempty"`
	UpFor     time.Duration `json:"up_for_ns,omitempty"`
	// Outage is what something outside has done to it since the time of the question.
	Outage  string        `json:"outage,omitempty"`
	Own     bool          `json:"own,omitempty"`     // it is not up through a fault of its driver
	Crashed bool          `json:"crashed,omitempty"` // the fault is a crash
	Code    contract.Code `json:"code,omitempty"`
	Message string        `json:"message,omitempty"`
}

func (l *ListenerReport) name() journal.ListenerName {
	return journal.ListenerName{Treatment: l.Treatment, At: l.At}
}
