package executor

import (
	"context"
	"time"

	"linktrial/executor/journal"
	"linktrial/internal/radio"
)

// Flows may start on nodes that do not lead. The leading node gives each of
// those a [FlowAssignment] before the trial, begins the trial on the radio when
// all have accepted theirs, and tells them the moment at which it began; each
// starts its flows by its own monotonic clock, which must be the leading node's (nodes
// of one machine, as in a laboratory). The outcomes go back to the leading node,
// whose journal has the attempt; the samples stay in the journal of the node
// that ran the flows.

// FlowAssignment is what another node has to do in one attempt: to run the
// flows of the trial that start on it, to have the listeners up that the trial
// needs there, and to say when one of them was ended or stopped from outside.
type FlowAssignment struct {
	Run       string `json:"run"`
	SheetHash string `json:"sheet_hash"`
	Trial     int    `json:"trial"`
	Attempt   int    `json:"attempt"`
}

// FlowOutcome is one flow as the node that ran it saw it.
type FlowOutcome struct {
	Result   journal.FlowResult `json:"result"`
	Breaches []string           `json:"notes,omitempty"` // of the driver contract that decided nothing
	Log      string             `json:"log,omitempty"`   // of a flow that did not succeed
	// Ready is when its driver was about to connect and Exited when its driver
	// had exited, by the monotonic clock that the nodes share; zero: not known.
	Ready  time.Time `json:"ready,omitzero"`
	Exited time.Time `json:"exited,omitzero"`
	// Connected is when its connected event was read, by the same clock.
	Connected time.Time `json:"connected,omitzero"`
}

// Outage is a fault of the apparatus on a node during an attempt.
type Outage struct {
	Text string // what it was; empty: there was none
	// Stopped is set where a process did not run for some time and went on, or the
	// radio's interface carried nothing or otherwise: then a value that was measured
	// meanwhile is false, too.
	Stopped bool
}

// Sources reaches the nodes that do not lead.
type Sources interface {
	// Prepare gives a node its assignment and returns when the node has accepted
	// it and has its listeners up and its drivers ready. The context bounds it. It
	// is called for several nodes at once. A [ListenerError] is the protocol's
	// fault, any other one the node's.
	Prepare(ctx context.Context, role radio.Role, a FlowAssignment) (Source, error)
}

// Source is a node that has accepted an assignment.
type Source interface {
	// Carry tells the node when the trial began and returns the outcomes of its
	// flows. The end of the context stops them; their outcomes are still
	// returned, or an error within seconds.
	Carry(ctx context.Context, began time.Time) ([]FlowOutcome, error)
	// Outage returns what was not in order on the node since the assignment was
	// accepted, as soon as that is known: a listener of the trial that something
	// outside has ended or stopped, or its agent, which did not run; an error where
	// the node itself is gone; and nothing once Over was called and all had been in
	// order, or ctx has ended. It is called once.
	Outage(ctx context.Context) (Outage, error)
	// Over tells the node that the attempt's flows have ended.
	Over()
	// Close withdraws an assignment that was not begun, and ends one that was. It
	// may be called twice.
	Close() error
}

// Carrier runs this node's flows for the leading node; see
// [Config.TakeAssignments]. It takes one assignment at a time.
type Carrier interface {
	// Check reports why an assignment cannot be carried out here.
	Check(a FlowAssignment) error
	// Await waits until the listeners of an assignment that passes Check are up, for
	// ten seconds at most, and reports why one is not: with a [ListenerError] where
	// that is its driver's fault.
	Await(ctx context.Context, a FlowAssignment) error
	// Watch begins to watch the listeners of an assignment that passes Check, and the
	// agent. Outage returns what was not in order since then: as soon as that is known,
	// or nothing when over is closed and all had been in order, or ctx has ended.
	Watch(a FlowAssignment) (outage func(ctx context.Context, over <-chan struct{}) Outage)
	// Prepare prepares the drivers of an assignment that passes Check, where the
	// runner can; release frees what Carry did not take of them.
	Prepare(ctx context.Context, a FlowAssignment) (release func())
	// Carry runs this node's flows of an assignment that passes Check, and
	// returns when their drivers have exited. The end of ctx stops them.
	Carry(ctx context.Context, a FlowAssignment, began time.Time) []FlowOutcome
	// Sync makes durable what Carry recorded. It is called when the leading node
	// has its answer, and before the next assignment is accepted: both nodes'
	// disks work at the same time, and the next trial waits for one of them less.
	Sync()
}
