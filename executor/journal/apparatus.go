package journal

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"linktrial/internal/radio"
	"linktrial/protocols/contract"
)

// Listener is the state of one treatment's listener on the server node, or of one
// of its relay processes.
type Listener struct {
	Treatment string `json:"treatment"`
	// At is the role whose node runs the relay process; empty for the
	// treatment's own listener.
	At       radio.Role     `json:"at,omitempty"`
	Port     int            `json:"port"`
	Info     *contract.Info `json:"info,omitempty"`
	Code     contract.Code  `json:"code,omitempty"`
	Message  string         `json:"message,omitempty"`
	Restarts int            `json:"restarts,omitempty"`
	// Outside is set where something outside the driver ended it, or stopped it.
	Outside bool `json:"outside,omitempty"`
	// Stopped is set where the process was stopped and not ended: it may go on.
	Stopped bool `json:"stopped,omitempty"`
	// Renewed is set where Linktrial ended it, or has not started it, because the radio's
	// interface was not in order, and starts it again: it may have kept what is not true
	// any more. Message says what was wrong.
	Renewed bool `json:"renewed,omitempty"`
	// Crashed is set where the driver crashed ([ReasonCrashed]); Transfers are those
	// that it was carrying then.
	Crashed   bool     `json:"crashed,omitempty"`
	Transfers []string `json:"transfers,omitempty"`
}

var listenerKind = kindOf([]Type{TypeListenerReady, TypeListenerFailed},
	"server; with `at` the node of that role",
	"`treatment`, `at` (of a relay process: the role whose node runs it), `port`, `info` or `code` and `message`, `restarts` so far, `outside` where something outside its driver ended it, with `stopped` where it was stopped (SIGSTOP) and may go on, and with `renewed` where Linktrial ended it after a fault of the radio's interface, to start it again, or starts it when that is in order; `crashed` where its driver crashed, with the `transfers` that it was carrying",
	func(r *Record, b *Listener) error {
		if b.Treatment == "" || b.Port < 0 || b.Port > 65535 || b.Restarts < 0 || b.Restarts > MaxAttempts {
			return fmt.Errorf("treatment %q, port %d, restarts %d", b.Treatment, b.Port, b.Restarts)
		}
		return r.only(cmp.Or(b.At, radio.RoleServer))
	},
	func(t Type, b *Listener) string {
		if t == TypeListenerReady {
			return fmt.Sprintf("%s is ready on port %d", b.text(), b.Port)
		}
		return fmt.Sprintf("%s has failed%s%s", b.text(), because(string(b.Code)), because(b.Message))
	})

// text names a listener.
func (l *Listener) text() string {
	if l.At != "" {
		return fmt.Sprintf("the relay process of %s at the %s", l.Treatment, l.At)
	}
	return "the listener of " + l.Treatment
}

// ListenerName names one of a run's listeners: a treatment's own, or with At one of
// its relay processes.
type ListenerName struct {
	Treatment string
	At        radio.Role
}

// Name is which listener it is.
func (l *Listener) Name() ListenerName { return ListenerName{l.Treatment, l.At} }

// Waiting is why the leading node does not go on from here on: something of the apparatus is
// not in order. Without a fault it goes on.
type Waiting struct {
	Trial int    `json:"trial"`
	Fault string `json:"fault,omitempty"`
}

var waitingKind = kindOf([]Type{TypeWaiting},
	"client",
	"`trial`, and why it does not begin or is repeated (`fault`): what of the apparatus is not in order from here on; without `fault`, the run goes on or pauses",
	func(r *Record, b *Waiting) error {
		return errors.Join(attempt(b.Trial, 1, 0), r.only(radio.RoleClient))
	},
	func(_ Type, b *Waiting) string {
		if b.Fault == "" {
			return fmt.Sprintf("trial %d waits no longer", b.Trial)
		}
		return fmt.Sprintf("trial %d waits: %s", b.Trial, b.Fault)
	})

// RadioInterface is the state of the radio's interface on a node from here on.
type RadioInterface struct {
	Device string `json:"device,omitempty"`
	// Forwards reports whether the node's kernel forwards others' packets over it. The
	// relays of an emulated network forward within the emulator.
	Forwards bool   `json:"forwards,omitempty"`
	Fault    string `json:"fault,omitempty"` // what keeps it from carrying packets as it should
}

var interfaceKind = kindOf([]Type{TypeInterfaceFailed, TypeInterfaceReady},
	"all, where faults can happen as in `agent-stopped`",
	"`device`, one record for each interface that is concerned, `forwards` where the node's kernel forwards packets of others over it, and with the first `fault`: what keeps the radio's interface from carrying packets as it should, from here on; `interface-ready` when it is in order again. Not at the begin where all is well",
	nil,
	func(t Type, b *RadioInterface) string {
		if t == TypeInterfaceReady {
			return fmt.Sprintf("the radio's interface %s is in order again", b.Device)
		}
		return fmt.Sprintf("the radio's interface %s is not in order: %s", b.Device, b.Fault)
	})

// ControlTraffic is packets between nodes and the orchestrator that passed an interface of
// this node, with their IP headers. One that the node forwards passes two of them.
type ControlTraffic struct {
	Packets int64 `json:"packets"`
	Bytes   int64 `json:"bytes"`
	// Others of them, with OthersBytes, are neither from this node nor to it: another
	// node's, which it forwards, or which its orchestrator is sent.
	Others      int64 `json:"others,omitempty"`
	OthersBytes int64 `json:"others_bytes,omitempty"`
}

// Add adds what passed in another time.
func (c *ControlTraffic) Add(more ControlTraffic) {
	c.Packets, c.Bytes = c.Packets+more.Packets, c.Bytes+more.Bytes
	c.Others, c.OthersBytes = c.Others+more.Others, c.OthersBytes+more.OthersBytes
}

// TypeControlCounted is [ControlCounted].
const TypeControlCounted Type = "control-counted"

// ControlCounted is the control traffic of a node that does not lead from Since to Until,
// with in-band control: one record follows the other without gaps while the node's part
// in the run is executed.
type ControlCounted struct {
	Since time.Time `json:"since"`
	Until time.Time `json:"until"`
	ControlTraffic
}

var controlKind = kindOf([]Type{TypeControlCounted},
	"all but the client, with in-band control",
	"`since` and `until`, `packets` and `bytes` between the node and the orchestrator in this time, [how](#faults-of-the-apparatus)",
	func(_ *Record, b *ControlCounted) error {
		if b.Since.Before(Earliest) || !b.Until.Before(Latest) || b.Until.Before(b.Since) || b.Others < 0 || b.OthersBytes < 0 || b.Packets < b.Others || b.Bytes < b.OthersBytes {
			return fmt.Errorf("%d packets with %d B from %s to %s", b.Packets, b.Bytes, b.Since.Format(time.RFC3339), b.Until.Format(time.RFC3339))
		}
		return nil
	},
	nil)

// Misbehaviour is a breach of the driver contract that did not end the attempt by itself.
type Misbehaviour struct {
	Treatment string `json:"treatment"`
	// Trial, Attempt and Flow are where it happened; absent where it belongs to no
	// attempt, and Flow also where it belongs to no one flow.
	Trial   *int   `json:"trial,omitempty"`
	Attempt int    `json:"attempt,omitempty"`
	Flow    *int   `json:"flow,omitempty"`
	Message string `json:"message"`
	Log     string `json:"log,omitempty"`
}

var misbehaviourKind = kindOf([]Type{TypeDriverMisbehaved},
	"client, server",
	"`treatment`, `message`, `log`: a breach of the driver contract that did not change the verdict, such as a process that was left behind, or a sample with a cumulative metric that went back (once for each end of a flow); `trial`, `attempt` and `flow` where it is of an attempt, or of one flow of it",
	nil,
	func(_ Type, b *Misbehaviour) string {
		where := ""
		if b.Trial != nil {
			where = fmt.Sprintf("trial %d, attempt %d: ", *b.Trial, b.Attempt)
		}
		return where + "the driver of " + b.Treatment + " misbehaved" + because(b.Message)
	})
