package executor

import (
	"context"
	"errors"
	"fmt"
	"io"

	"linktrial/executor/journal"
	"linktrial/protocols/contract"
)

// Runner starts driver processes.
type Runner interface {
	// Start starts the driver of a protocol and hands it the parameters, and after them
	// the payload (nil: none), until it ends or the driver takes no more. An
	// error means that nothing runs; one that wraps [ErrNoDriver] means that
	// another try is of no use, one that wraps [ErrBrokenDriver] that it is the
	// driver's fault, any other that it is the node's. A driver that lacks a
	// feature the parameters need is not started: it would ignore the field it
	// does not know.
	Start(ctx context.Context, protocol string, p *contract.Parameters, payload io.Reader) (Process, error)
}

// Preparer is a [Runner] that takes long to start a driver. Every node prepares
// the drivers of its flows before the channel of a trial begins, so that their
// start takes none of the channel's time; the leading node prepares its own as
// soon as the trial before has its outcome.
type Preparer interface {
	// Prepare makes the driver of a flow ready for Start with the same transfer.
	// release frees what Start did not take. Start reports what goes wrong.
	Prepare(ctx context.Context, protocol, transfer string) (release func())
}

// ErrNoDriver reports that a node has no usable driver of a name, or none that
// can do what the parameters ask.
var ErrNoDriver = errors.New("no such driver")

// ErrBrokenDriver reports that a driver's program cannot be executed: there is no such
// file, or it is none that this machine runs.
var ErrBrokenDriver = errors.New("the driver's program cannot be executed")

// startReason is the reason of a flow whose process could not be started, and its
// verdict: what a node lacks (memory, processes, files, its container engine) says
// nothing of the protocol.
func startReason(err error) (journal.Verdict, string) {
	switch {
	case errors.Is(err, ErrNoDriver):
		return journal.Failed, string(contract.CodeUnsupported)
	case errors.Is(err, ErrBrokenDriver):
		return journal.Failed, journal.ReasonNoStart
	}
	return journal.Invalid, journal.ReasonNoProcess
}

// Process is one running driver.
type Process interface {
	// Output is the driver's standard output. It ends when the driver has
	// exited; the reader closes it.
	Output() io.ReadCloser
	// Done is closed when the process and all that it started have exited.
	Done() <-chan struct{}
	// Exit is how the process ended; only after Done.
	Exit() Exit
	// Log is the end of its standard error, at most [MaxLog] bytes.
	Log() string
	// Stops tells when something outside stops the process and lets it go on, from
	// Start on; nil: that is not known of it.
	Stops() *Stops
	// Terminate asks the driver to stop, Kill stops it. Neither waits, and
	// both do nothing after Done.
	Terminate()
	Kill()
}

// Checked is a [Process] of which can be told whether its program is the one that was to
// be started. A script or a module is read after the process has begun, so that what was
// checked before can have been replaced meanwhile.
type Checked interface {
	Process
	// Changed says that, and why, another program may run or have run; empty: none did.
	Changed() string
}

// changed is [Checked.Changed] of a process; empty: nothing is known against it.
func changed(p Process) string {
	if c, ok := p.(Checked); ok {
		return c.Changed()
	}
	return ""
}

// MaxLog is how much of a driver's standard error is kept, in bytes.
const MaxLog = 64 << 10

// Exit is how a driver process ended.
type Exit struct {
	Code    int    // -1 when a signal ended it
	Signal  string // "killed"; empty when it exited by itself
	Flooded bool   // its standard error came faster than a log may
	// OverMemory is set where it was ended for using more memory than it may.
	OverMemory bool
	// Left names the processes that it left behind, which were ended; empty: none.
	Left string
}

// SignalLost is in place of a signal's name where the container engine ended, and
// with it what is known of the process.
const SignalLost = "lost: the container engine ended"

// outside reports whether something outside ended a driver that the executor did not
// ask to stop: a signal that a fault of its own does not bring about (a person's, or
// the kernel's where the node has no memory left), or its container engine's end.
func (e Exit) outside() bool {
	if e.Flooded || e.OverMemory {
		return false
	}
	switch e.Signal {
	case "killed", "terminated", "interrupt", "hangup", SignalLost:
		return true
	}
	return false
}

// leftMessage says what a driver left behind; empty: nothing.
func (e Exit) leftMessage() string {
	if e.Left == "" {
		return ""
	}
	return "left behind, and Linktrial ended: " + e.Left
}

func (e Exit) String() string {
	if e.Signal != "" {
		return "signal: " + e.Signal
	}
	return fmt.Sprintf("exit code %d", e.Code)
}
