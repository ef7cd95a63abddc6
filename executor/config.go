package executor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
	"linktrial/internal/radiocontrol"
	"linktrial/protocols/contract"
)

// Journal is where everything goes; [journal.File] is one.
type Journal interface {
	Append(t journal.Type, body any) (seq int64, err error)
	Sync() error
	// CheckSpace says [journal.ErrDiskFull] when no further trial may start.
	CheckSpace() error
	Records(func(journal.Record) error) error
}

// Runner starts driver processes.
type Runner interface {
	// Start starts the driver of a protocol and hands it the parameters. An
	// error means that nothing runs; one that wraps [ErrNoDriver] means that
	// trying again is of no use. A driver that lacks a feature the parameters
	// need is not started: it would pass over the field it does not know.
	Start(ctx context.Context, protocol string, p *contract.Parameters) (Process, error)
}

// Preparer is a [Runner] that takes long to start a driver. Every node has the
// drivers of its flows prepared before the channel of a trial begins, so that
// their starting takes none of the channel's time; the leading node's as soon as
// the trial before has its outcome.
type Preparer interface {
	// Prepare has the driver of a flow ready for Start with the same transfer.
	// release takes back what Start did not take. What goes wrong, Start says.
	Prepare(ctx context.Context, protocol, transfer string) (release func())
}

// ErrNoDriver says that a node has no (usable) driver of a name, or none that
// can do what the parameters ask.
var ErrNoDriver = errors.New("no such driver")

// Process is one running driver.
type Process interface {
	// Output is the driver's standard output. It ends when the driver has
	// gone; the reader closes it.
	Output() io.ReadCloser
	// Done is closed when the process and all that it started have gone.
	Done() <-chan struct{}
	// Exit says how it went; only after Done.
	Exit() Exit
	// Log is the end of its standard error, at most [MaxLog] bytes.
	Log() string
	// Terminate asks the driver to stop, Kill stops it. Neither waits, and
	// both do nothing after Done.
	Terminate()
	Kill()
}

// MaxLog is how much of a driver's standard error is kept, in bytes.
const MaxLog = 64 << 10

// Exit is how a driver process went.
type Exit struct {
	Code    int    // -1 when a signal ended it
	Signal  string // "killed"; empty when it exited by itself
	Flooded bool   // its standard error came faster than a log may
}

func (e Exit) String() string {
	if e.Signal != "" {
		return "signal: " + e.Signal
	}
	return fmt.Sprintf("exit code %d", e.Code)
}

// Radio is the emulated radio network. Every call is bounded by its context.
type Radio interface {
	Configure(ctx context.Context, n *radio.Network) error
	Begin(ctx context.Context, b radiocontrol.Begin) error
	End(ctx context.Context, trial string) (*radiocontrol.Report, error)
}

// ErrRadioRefused says that the emulator answered, and will not do what was asked.
var ErrRadioRefused = errors.New("refused by the emulated radio")

// Clock tells and waits for time; nil in [Config] is the system's.
type Clock interface {
	Now() time.Time
	// Timer sends once after d; stop releases it.
	Timer(d time.Duration) (fired <-chan time.Time, stop func())
}

type systemClock struct{}

func (systemClock) Now() time.Time { return time.Now() }
func (systemClock) Timer(d time.Duration) (<-chan time.Time, func()) {
	t := time.NewTimer(d)
	return t.C, func() { t.Stop() }
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

	Journal Journal
	Runner  Runner
	Radio   Radio // nil on a real radio
	// Sources reaches the nodes that do not lead; nil: flows that start on
	// others are refused.
	Sources Sources
	Clock   Clock // nil: the system's
	Logger  *slog.Logger

	// CaptureFile names the packet log of an attempt, where the sheet asks for
	// one; nil: no packet logs.
	CaptureFile func(trial, attempt int) string

	// The hooks are all optional, and may block only as long as their context
	// or their own bound lets them.

	// Begun is called when the run's journal has been opened with run-started
	// or run-resumed, before anything else: provenance and clock.
	Begun func(ctx context.Context, resumed bool) error
	// Go, when not nil, is waited for before the first trial.
	Go <-chan struct{}
	// Leading is called after Go, before the first trial.
	Leading func(ctx context.Context)
	// Between is called at each trial boundary, when the trial is durable: with
	// in-band control, the only time to send anything. At the last one it is
	// called only where there are Commands, of which one may still come.
	Between func(ctx context.Context)
	// Commands are people's, to the leading node; nil: there are none.
	Commands Commands
	// Holding is called when a pause begins, in which nothing runs on the radio;
	// the function it returns, before the next trial starts.
	Holding func(ctx context.Context) (release func())
	// Closing is called when all is done but the run-ended record.
	Closing func(ctx context.Context)
	// Orders runs beside a part that does not lead, until its context ends, and
	// takes the leading node's orders to the carrier, one at a time.
	TakeAssignments func(ctx context.Context, c *Carrier)
	// Activity is called on the server with the number of transfers that run
	// whenever a listener says anything.
	Activity func(transfers int)
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

// Grace periods, all in the node's time.
const (
	limitGrace    = 2 * time.Second // past a limit of the plan, for the driver to say so itself
	termGrace     = time.Second     // between SIGTERM and SIGKILL
	exitGrace     = 2 * time.Second // from a client's last event to its exit
	listenLimit   = 15 * time.Second
	radioTimeout  = 10 * time.Second
	radioPatience = 30 * time.Second // for an emulator that is being started again
	batchEvery    = time.Second
	batchBytes    = 128 << 10
)

// part is a node's part in a run, once the sheet is read and the journal replayed.
type part struct {
	Config
	sheet *runsheet.Sheet
	past  *progress
}

// begin checks the sheet, replays the journal and opens it for this start. It
// returns nil and no error when the run has ended before.
func begin(ctx context.Context, cfg Config) (*part, error) {
	if h := runsheet.Hash(cfg.Sheet); h != cfg.SheetHash {
		return nil, fmt.Errorf("run %s: the sheet's hash is %s, the assignment says %s", cfg.RunID, h, cfg.SheetHash)
	}
	sheet, err := runsheet.Decode(cfg.Sheet)
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", cfg.RunID, err)
	}
	if cfg.Clock == nil {
		cfg.Clock = systemClock{}
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	cfg.Logger = cfg.Logger.With("run", cfg.RunID)
	p := &part{Config: cfg, sheet: sheet}
	if p.past, err = replay(cfg.Journal); err != nil {
		return nil, fmt.Errorf("run %s: %w", cfg.RunID, err)
	}
	if p.past.ended != nil {
		return nil, nil
	}
	t := journal.TypeRunStarted
	if p.past.sheetHash != "" {
		if p.past.sheetHash != cfg.SheetHash {
			return nil, fmt.Errorf("run %s: its journal is of sheet %s, the assignment is of sheet %s", cfg.RunID, p.past.sheetHash, cfg.SheetHash)
		}
		t = journal.TypeRunResumed
	}
	p.append(t, journal.RunStarted{SheetHash: cfg.SheetHash, Version: cfg.Version, Trials: len(sheet.Trials)})
	if p.Begun != nil {
		if err := p.Begun(ctx, p.past.provenance); err != nil && !ordered(ctx) {
			return nil, fmt.Errorf("run %s: %w", cfg.RunID, err)
		}
	}
	return p, p.sync()
}

// append notes a record. A journal that cannot take it shows at the next sync
// or space check, where something can be done about it.
func (p *part) append(t journal.Type, body any) {
	if _, err := p.Journal.Append(t, body); err != nil && !errors.Is(err, journal.ErrDiskFull) {
		p.Logger.Error("record was not taken by the journal", "type", string(t), "error", err)
	}
}

// sync makes the journal durable. A full disk is no error here: what was
// appended is safe in the reserve, and CheckSpace stops the run.
func (p *part) sync() error {
	if err := p.Journal.Sync(); err != nil && !errors.Is(err, journal.ErrDiskFull) {
		return err
	}
	return nil
}

// end writes the node's last record.
func (p *part) end(ctx context.Context, e journal.RunEnded) error {
	if p.Closing != nil {
		p.Closing(context.WithoutCancel(ctx))
	}
	p.append(journal.TypeRunEnded, e)
	return p.sync()
}

// ordered says whether ctx was ended by an abort or a finish, so that the
// run's end belongs in the journal.
func ordered(ctx context.Context) bool {
	var abort *AbortError
	cause := context.Cause(ctx)
	return errors.As(cause, &abort) || errors.Is(cause, ErrFinish)
}

// stopped turns the end of a context into the node's last record, or leaves the
// run open when it was only interrupted.
func (p *part) stopped(ctx context.Context) error {
	cause := context.Cause(ctx)
	var abort *AbortError
	switch {
	case errors.As(cause, &abort):
		p.append(journal.TypeCommand, journal.Command{ID: abort.ID, Kind: journal.CommandAbort, By: abort.By})
		return p.end(ctx, journal.RunEnded{End: journal.RunAborted, Reason: abort.Reason})
	case errors.Is(cause, ErrFinish):
		return p.end(ctx, journal.RunEnded{End: journal.RunCompleted})
	}
	return errors.Join(p.sync(), cause)
}

func (p *part) addressOf(role radio.Role) string {
	if a := p.Peers[role]; a != "" {
		return a
	}
	if p.sheet.Network != nil {
		for _, n := range p.sheet.Network.Nodes {
			if n.Role == role {
				return n.Address
			}
		}
	}
	return radio.Addresses[role]
}

func (p *part) ownAddress() string {
	if p.Address != "" {
		return p.Address
	}
	return p.addressOf(p.Role)
}

// parameters are the part of a driver's document that both ends share.
func (p *part) parameters(t *runsheet.Treatment, role contract.Role) *contract.Parameters {
	q := &contract.Parameters{
		Contract: contract.Version, Role: role, Device: p.Device, Options: t.Options,
		Limits:           contract.Limits{ConnectMS: ceilMS(p.sheet.Limits.Connect), TransferMS: ceilMS(p.sheet.Limits.Transfer)},
		SampleIntervalMS: int(ceilMS(p.sheet.SampleInterval)),
	}
	if q.SampleIntervalMS <= 0 {
		q.SampleIntervalMS = 100
	}
	if q.Options == nil {
		q.Options = map[string]any{}
	}
	return q
}

func ceilMS(d time.Duration) int64 { return int64((d + time.Millisecond - 1) / time.Millisecond) }

// takeOrders runs the Orders hook; the returned function waits for its end.
func (p *part) takeAssignments(ctx context.Context) (wait func()) {
	var running sync.WaitGroup
	if p.TakeAssignments != nil {
		running.Go(func() { p.TakeAssignments(ctx, &Carrier{p}) })
	}
	return running.Wait
}
