package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"linktrial/agents/radioset"
	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/executor/runsheet"
	"linktrial/internal/atomicfile"
	"linktrial/internal/inputfile"
)

// agent is one start of an agent.
type agent struct {
	node
	runs        map[string]*run // guarded by the node's mutex, as the next two
	preflightID string          // preflight that was begun last
	orderID     string          // of radios that was begun last
	open        *openTransfers  // of a preflight, where this node listens for them; nil: none
	pruned      bool            // runs that were stored long ago are removed; of watchClock alone
	running     sync.WaitGroup
	again       context.CancelCauseFunc // ends this start of the agent

	radios *radioset.Keeper // that people set up; nil: none can be, as in a lab
	fixed  string           // why none can be set up; empty: one can
	// shown are the interfaces that the call under way tells of. Of the session's loop.
	shown *linktrialv1.InterfaceList
}

// openTransfers is the part of a node that listens, between two requests of a preflight.
type openTransfers struct {
	name  string
	close chan struct{} // closed when the orchestrator asks for the end
	seen  chan []*linktrialv1.TransferSeen
}

// forget gives back what a run takes in memory when the orchestrator has all of it. Its
// folder says from then on that it is not to begin again.
func (a *agent) forget(r *run) {
	r.mu.Lock()
	stored := !r.note.Stored.IsZero()
	r.mu.Unlock()
	if !stored || !a.isStored(r.id) {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.runs, r.id)
}

// isStored reports whether a run has ended and been stored.
func (a *agent) isStored(id string) bool {
	notes, _, err := readNotes(a.cfg.runsDir())
	return err == nil && slices.ContainsFunc(notes, func(n note) bool { return n.Run == id && !n.Stored.IsZero() })
}

// saveRun writes a run to the state folder, unless it is there already. Whether
// its sheet is to be trusted is checked whenever the run is opened.
func (a *agent) saveRun(n note, sheet []byte) error {
	if !runForm.MatchString(n.Run) {
		return fmt.Errorf("run %q: expected letters, digits, hyphens and underscores", n.Run)
	}
	dir := filepath.Join(a.cfg.runsDir(), n.Run)
	if old, err := inputfile.Read(filepath.Join(dir, sheetFile), maxSheet); err == nil && runsheet.Hash(old) != n.SheetHash {
		if _, err := os.Stat(filepath.Join(dir, noteFile)); err == nil {
			return fmt.Errorf("run %s is here already, with another sheet", n.Run)
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("run %s: %w", n.Run, err)
	}
	if err := atomicfile.Write(filepath.Join(dir, sheetFile), sheet, 0o644); err != nil {
		return fmt.Errorf("run %s: %w", n.Run, err)
	}
	return n.write(dir)
}

// startRun starts the goroutine that executes a run and delivers its journal.
func (a *agent) startRun(ctx context.Context, n note) *run {
	r := &run{node: &a.node, id: n.Run, hash: n.SheetHash, note: n, dir: filepath.Join(a.cfg.runsDir(), n.Run), commands: &commandQueue{all: n.Commands}, mayLead: make(chan struct{}), ended: make(chan struct{}), log: a.cfg.Logger.With("run", n.Run)}
	var ectx context.Context
	ectx, r.cancel = context.WithCancelCause(ctx)
	r.applyDesired()
	a.mu.Lock()
	a.runs[n.Run] = r
	a.mu.Unlock()
	a.running.Go(func() {
		defer r.cancel(nil)
		if err := r.run(ctx, ectx); err != nil && !errors.Is(err, context.Canceled) {
			r.log.Error("run cannot go on on this node", "error", err)
			r.err = err
		}
		a.forget(r)
	})
	return r
}
