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

// InterfaceFault is why the interface of one of a node's radios cannot carry packets as it
// should.
type InterfaceFault struct {
	Device, Text string
	// Undone is set where it was put right as soon as it was seen, and a process keeps nothing
	// of it.
	Undone bool
}

// Interface knows when the interfaces of the radios that the run uses on the node could
// not carry packets as they should: one was down or another one, had another MTU or
// address, or packets to other nodes did not leave through it.
type Interface interface {
	// Since returns what was wrong at some time since a moment of the node's clock, of each
	// interface at most once, and a channel that is closed when something else is wrong, or
	// may be.
	Since(at time.Time) (faults []InterfaceFault, more <-chan struct{})
	// State returns what is wrong now, of each interface at most once, and a channel that
	// is closed when that changes, or may have.
	State() (faults []InterfaceFault, changed <-chan struct{})
	// Deaf says why what listens at a port of this node cannot hear what comes over the
	// radio, empty for nothing that is known.
	Deaf(port int) string
}

// Host measures what the node's processors keep from the programs of an attempt.
type Host interface {
	// Begin begins to measure. The end returns what was measured since, of which Missed
	// is the time by which wake-ups were later than what is tolerated. Neither waits. Only
	// one measurement is made at a time.
	Begin(tolerate time.Duration) (end func() journal.HostLoad)
}

// PacketsTook is what left this node over its radios for one connection to a listener.
type PacketsTook struct {
	Port       int           // of the listener
	Bytes      int64         // without the least headers
	Took       time.Duration // from when its payload had begun until as many bytes as the least payload has had left; 0: that is not known
	Connecting time.Duration // from its first packet until the listener's first one; 0: that is not known
}

// Payloads are those of an attempt's flows to a listener, in bytes.
type Payloads struct{ Least, Sum int64 }

// PacketsSent notes when packets leave this node over its radios, and counts those that come
// back, whatever their drivers say.
type PacketsSent interface {
	// Begin begins anew, with an attempt whose flows carry these payloads to listeners, by
	// their ports.
	Begin(payloads map[int]Payloads) error
	// Took returns what has left since Begin: of each connection, and by the listener's port
	// the time from when the first payload had begun until as many bytes as the sum has had
	// left over all connections, where that is known.
	Took() (connections []PacketsTook, whole map[int]time.Duration, err error)
	// Answered returns how many packets have arrived from another node's listener since the
	// run began, to whatever client, at the most.
	Answered(port int) (int64, error)
}

// PacketsArrived notes when packets arrive at this node over its radios, whatever their
// drivers say.
type PacketsArrived interface {
	// Listen begins with a listener, whose transfers each carry so many bytes; 0: that is not
	// known.
	Listen(port int, size int64) error
	// Ended returns how long it took, for a transfer of a listener that has ended, from when
	// its payload had begun until as many bytes as the payload has had arrived, at the least;
	// 0: that is not known.
	Ended(port int) (time.Duration, error)
	// Passed returns how many packets to a listener have arrived since the begin, from
	// whatever client, at the most.
	Passed(port int) (int64, error)
}

// PortRange is a range of ports, with both ends; the zero value is empty.
type PortRange struct{ First, Last int }

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
	Sent func() (int64, error)
	// Received is the same of what it has received, on real radios: emulated ones report it
	// themselves.
	Received func() (int64, error)
	// PacketsSent notes when packets of transfers leave this node, PacketsArrived when they
	// arrive; nil: nobody does.
	PacketsSent    PacketsSent
	PacketsArrived PacketsArrived
	Clock          Clock        // nil: the system's
	Logger         *slog.Logger // nil: none

	// Control counts control traffic, with in-band control; nil: nobody does.
	Control ControlCounter
	// Stalls knows when this agent did not run; nil: nobody does.
	Stalls Stalls
	// Host measures what the node's processors keep from attempts; nil: nobody does.
	Host Host
	// Interface watches the interfaces of the node's radios; nil: nobody does.
	Interface Interface

	// Paths exchanges packets with the nodes that do not lead; nil: failures count as the
	// client sees them, but for what Sources tell.
	Paths Paths
	// AnswerPaths runs on a node that does not lead until its context ends, and answers the
	// exchanges of the leading node at the node's radio address with what state returns;
	// nil: nobody answers.
	AnswerPaths func(ctx context.Context, address string, state func(PathQuestion) NodeState)
	// SparePorts are for listeners whose port another program holds.
	SparePorts PortRange

	// Network is which packets a protocol sends, "tcp", "udp" or "sctp", as its driver's
	// manifest says, empty where that is not known; nil: of no protocol.
	Network func(protocol string) string
	// PortHolder names the program that holds a port of the node for such packets, empty
	// where none is known; nil: nobody knows.
	PortHolder func(network string, port int) string

	// Commands are people's, to the leading node; nil: there are none.
	Commands Commands
	// JudgementWait is how long the leading node keeps a run open after its last trial for a
	// command to repeat one; 0: as long as what the other nodes recorded of it may take to
	// be known, which is 10 s, and with in-band control longer.
	JudgementWait time.Duration
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
