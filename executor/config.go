package executor

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"linktrial/executor/journal"
	"linktrial/internal/radio"
	"linktrial/internal/radiocontrol"
)

// Journal is where all records go; [journal.File] is one.
type Journal interface {
	Append(t journal.Type, body any) (seq int64, err error)
	Sync() error
	// CheckSpace returns [journal.ErrDiskFull] when no further trial may start.
	CheckSpace() error
	Records(func(journal.Record) error) error
}

// Radio is the emulated radio network. Every call is bounded by its context.
type Radio interface {
	Configure(ctx context.Context, n *radio.Network) error
	Begin(ctx context.Context, b radiocontrol.Begin) error
	End(ctx context.Context, trial string) (*radiocontrol.Report, error)
}

// RadioWatcher is a [Radio] that tells when it has ended.
type RadioWatcher interface {
	// Gone blocks until the emulated radio has ended, and says how, or until ctx ends:
	// then it returns nothing.
	Gone(ctx context.Context) string
}

// RadioSettler is a [Radio] that tells when what a trial left has passed.
type RadioSettler interface {
	// Quiet waits for a moment until the radios are quiet, and reports whether they are.
	Quiet(ctx context.Context, q radiocontrol.Quiet) (bool, error)
}

// ErrRadioRefused reports that the emulator answered, and will not do what was asked.
var ErrRadioRefused = errors.New("refused by the emulated radio")

// Command is a person's command to the leading node. An abort is none of
// these: see [AbortError].
type Command struct {
	ID    string              `json:"id"`
	Kind  journal.CommandKind `json:"kind"`
	Trial int                 `json:"trial,omitempty"` // of skip and repeat
	By    string              `json:"by,omitempty"`
}

// Commands is where a run's commands come from. They are a state: all that were
// ever given. The journal has which of them were applied, so that none is lost
// or applied twice, whichever of agent and orchestrator is started again.
type Commands interface {
	// Given returns all commands so far, oldest first, and a channel that is
	// closed when there are more. It does not block.
	Given() (all []Command, more <-chan struct{})
}

// ControlCounter counts packets between this node and the orchestrator, by means that do
// not rest on what keeps the node silent during trials.
type ControlCounter interface {
	// Take is what was counted since the call before.
	Take() (journal.ControlTraffic, error)
}

// Stalls knows when the node's agent did not run for longer than a busy machine
// explains: it was stopped (SIGSTOP), or its machine was suspended.
type Stalls interface {
	// Since returns the stalls that ended after a moment of the node's clock, oldest
	// first, and a channel that is closed when there are more.
	Since(at time.Time) (stalls []journal.AgentStopped, more <-chan struct{})
}

// Interface knows when the radio's interface on the node could not carry packets as it
// should: it was down, or had another MTU or address.
type Interface interface {
	// Since returns what was wrong at some time since a moment of the node's clock,
	// empty for nothing, and a channel that is closed when something else is wrong.
	Since(at time.Time) (fault string, more <-chan struct{})
	// State returns what is wrong now, empty for nothing, and a channel that is closed
	// when that changes.
	State() (fault string, changed <-chan struct{})
}

// Config is one node's part in one run.
type Config struct {
	RunID     string
	Role      radio.Role
	Sheet     []byte // encoded; its hash must be SheetHash
	SheetHash string
	Version   string // of linktrial

	Address string                // of this node on the radio network; empty: from the sheet's network
	Peers   map[radio.Role]string // addresses of the nodes; a role not in it is looked up in the sheet's network
	Device  string                // the radio's interface
	// Forwards reports whether the node's kernel forwards packets of others over its radio.
	Forwards bool
	Place    string // of the run, as in its provenance; with [journal.PlaceVirtual] drivers' times are held more closely

	// Alive is when an earlier start of the run is last known to have been executed;
	// zero: not known.
	Alive time.Time

	Journal Journal
	Runner  Runner
	Radio   Radio // nil on a real radio
	// Sent is how many bytes the radio's interface has sent so far; nil: not known.
	Sent   func() (int64, error)
	Clock  Clock        // nil: the system's
	Logger *slog.Logger // nil: none

	// Control counts control traffic, with in-band control; nil: nobody does.
	Control ControlCounter
	// Stalls knows when this agent did not run; nil: nobody does.
	Stalls Stalls
	// Interface watches the radio's interface, Device; nil: nobody does.
	Interface Interface

	// Commands are people's, to the leading node; nil: there are none.
	Commands Commands
	// Sources reaches the nodes that do not lead; nil: flows that start on
	// others are refused.
	Sources Sources
	// TakeAssignments runs on a node that does not lead until its context ends,
	// and hands the leading node's assignments to the carrier, one at a time;
	// nil: no flow can start on this node.
	TakeAssignments func(ctx context.Context, c Carrier)
	// LogFolder is where drivers may write a log of each transfer, an absolute path;
	// empty: nowhere.
	LogFolder string
	// CaptureFile names the packet log of an attempt, where the sheet asks for
	// one; nil: no packet logs.
	CaptureFile func(trial, attempt int) string

	Observer Observer // nil: none
}

// AbortError as the cause of a cancelled context ends a run for good; any
// other cancellation interrupts it, and it can be resumed.
type AbortError struct {
	ID     string // of the command
	By     string
	Reason string
}

func (e *AbortError) Error() string { return "run aborted: " + e.Reason }

// ErrFinish as the cause of a cancelled context ends [Serve] and [Attend] well.
var ErrFinish = errors.New("run is finished")

// errSkipped as the cause of a cancelled context ends an attempt whose trial is skipped.
var errSkipped = errors.New("the trial was skipped")
