package executor

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"linktrial/executor/credible"
	"linktrial/executor/journal"
	"linktrial/executor/replay"
	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
	"linktrial/protocols/contract"
)

// peerLimit is how long the emulator or another node has, in the node's time, to
// be started again.
const peerLimit = 30 * time.Second

// node is this node in a run, once the sheet is read. Its Clock and Observer are never nil.
type node struct {
	Config
	sheet      *runsheet.Sheet
	secret     []byte              // of payloads; empty: they follow from the sheet
	virtual    bool                // the run is in virtual time
	tolerance  *credible.Tolerance // of drivers' times
	listeners  *listenerTable
	ports      farPorts
	spareTaken atomic.Int32
	record     *recorder
	log        *slog.Logger
}

// begin checks the sheet, replays the journal and opens it for this start. The
// node is nil, without an error, when the run has ended before.
func begin(ctx context.Context, cfg Config) (*node, *replay.State, error) {
	fail := func(err error) (*node, *replay.State, error) {
		return nil, nil, fmt.Errorf("run %s: %w", cfg.RunID, err)
	}
	if h := runsheet.Hash(cfg.Sheet); h != cfg.SheetHash {
		return fail(fmt.Errorf("the sheet's hash is %s, the assignment's %s", h, cfg.SheetHash))
	}
	sheet, err := runsheet.Decode(cfg.Sheet)
	if err != nil {
		return fail(err)
	}
	state, err := replay.Journal(cfg.Journal)
	if err != nil {
		return fail(err)
	}
	if state.Ended != nil {
		return nil, nil, nil
	}
	t := journal.TypeRunStarted
	if state.SheetHash != "" {
		if state.SheetHash != cfg.SheetHash {
			return fail(fmt.Errorf("its journal is of sheet %s, the assignment is of sheet %s", state.SheetHash, cfg.SheetHash))
		}
		t = journal.TypeRunResumed
	}
	n := newNode(cfg, sheet)
	n.record.append(t, journal.RunStarted{SheetHash: cfg.SheetHash, Version: cfg.Version, Trials: len(sheet.Trials), Alive: cfg.Alive, Forwards: cfg.Forwards})
	if err := n.Observer.Begun(ctx, state.Provenance); err != nil && !endedForGood(ctx) {
		return fail(err)
	}
	return n, state, n.record.sync()
}

func newNode(cfg Config, sheet *runsheet.Sheet) *node {
	if cfg.AnswerPaths == nil { // nobody tells who leads the port
		cfg.SparePorts = PortRange{}
	}
	if cfg.Clock == nil {
		cfg.Clock = systemClock{}
	}
	if cfg.Observer == nil {
		cfg.Observer = NopObserver{}
	}
	log := cfg.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	log = log.With("run", cfg.RunID)
	n := &node{
		Config: cfg, sheet: sheet, virtual: cfg.Place == journal.PlaceVirtual, tolerance: credible.At(cfg.Place), log: log,
		listeners: newListenerTable(), ports: farPorts{moved: map[radio.Role]map[journal.ListenerName]int{}}, record: &recorder{journal: cfg.Journal, log: log},
	}
	if !n.virtual {
		// Seeds follow from the plan, and a driver could try them. In virtual time the same
		// run has the same journal.
		n.secret = make([]byte, 16)
		_, _ = rand.Read(n.secret) // it never fails
	}
	return n
}

// end writes the node's last record.
func (n *node) end(ctx context.Context, e journal.RunEnded) error {
	n.Observer.Closing(context.WithoutCancel(ctx))
	n.record.append(journal.TypeRunEnded, e)
	return n.record.sync()
}

// endedForGood reports whether ctx was ended by an abort or a finish, so that
// the run's end belongs in the journal.
func endedForGood(ctx context.Context) bool {
	var abort *AbortError
	cause := context.Cause(ctx)
	return errors.As(cause, &abort) || errors.Is(cause, ErrFinish)
}

// stopped turns the end of a context into the node's last record, or leaves the
// run open when it was only interrupted.
func (n *node) stopped(ctx context.Context) error {
	cause := context.Cause(ctx)
	var abort *AbortError
	switch {
	case errors.As(cause, &abort):
		n.record.append(journal.TypeCommand, journal.Command{ID: abort.ID, Kind: journal.CommandAbort, By: abort.By})
		return n.end(ctx, journal.RunEnded{End: journal.RunAborted, Reason: abort.Reason})
	case errors.Is(cause, ErrFinish):
		return n.end(ctx, journal.RunEnded{End: journal.RunCompleted})
	}
	return errors.Join(n.record.sync(), cause)
}

func (n *node) addressOf(role radio.Role) string { return AddressOf(n.sheet, n.Peers, role) }

// AddressOf is the address of a role's node on the radio network: that of peers where it
// has one, else the sheet's.
func AddressOf(s *runsheet.Sheet, peers map[radio.Role]string, role radio.Role) string {
	return cmp.Or(peers[role], s.Network.AddressOf(role), radio.Addresses[role])
}

func (n *node) ownAddress() string {
	if n.Address != "" {
		return n.Address
	}
	return n.addressOf(n.Role)
}

// networkOfProtocol is which packets a protocol sends; empty: not known.
func (n *node) networkOfProtocol(protocol string) string {
	if n.Network == nil {
		return ""
	}
	return n.Network(protocol)
}

// wait is how long the plan waits for what is not in order.
func (n *node) wait() time.Duration { return cmp.Or(n.sheet.Limits.Wait, runsheet.DefaultWait) }

// parameters are what every driver process of a treatment is told.
func (n *node) parameters(options map[string]any, role contract.Role) *contract.Parameters {
	p := &contract.Parameters{
		Contract: contract.Version, Role: role, Device: n.Device, Options: options,
		Limits:           contract.Limits{ConnectMS: ceilMS(n.sheet.Limits.Connect), TransferMS: ceilMS(n.sheet.Limits.Transfer)},
		SampleIntervalMS: int(ceilMS(n.sheet.SampleInterval)),
	}
	if p.SampleIntervalMS <= 0 {
		p.SampleIntervalMS = 100
	}
	if role != contract.RoleRelay { // it knows nothing of transfers
		p.LogFolder = n.LogFolder
	}
	if p.Options == nil {
		p.Options = map[string]any{}
	}
	return p
}

func ceilMS(d time.Duration) int64 { return int64((d + time.Millisecond - 1) / time.Millisecond) }
