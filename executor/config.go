package executor

import (
	"context"
	"errors"
	"log/slog"

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
	Place   string                // of the run, as in its provenance; with [journal.PlaceVirtual] drivers' times are held more closely

	Journal Journal
	Runner  Runner
	Radio   Radio // nil on a real radio
	// Sent is how many bytes the radio's interface has sent so far; nil: not known.
	Sent   func() (int64, error)
	Clock  Clock        // nil: the system's
	Logger *slog.Logger // nil: none

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
