package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"time"

	"linktrial/agents/session"
	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/executor"
	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/inputfile"
	"linktrial/internal/radio"
)

// run is this node's part in one run.
type run struct {
	a       *agent
	id      string
	hash    string // of the sheet
	dir     string
	log     *slog.Logger
	cancel  context.CancelCauseFunc // of the execution
	mayLead chan struct{}           // closed when the client may lead
	ended   chan struct{}           // closed when the execution is over
	err     error                   // set before the goroutine ends

	mu            sync.Mutex
	note          note
	leading       bool      // mayLead is closed
	unlistedSince time.Time // since when the orchestrator no longer lists the run
	unlisted      int       // answers in a row that did not list it

	commands   *commandQueue
	delivery   *session.Delivery       // nil without an orchestrator
	assignment *linktrialv1.Assignment // verified, from when the sheet was read; nil without an orchestrator
}

// rank orders desired states: they only ever go forward.
var rank = map[DesiredState]int{desiredPrepare: 0, desiredRun: 1, desiredFinish: 2, desiredAbort: 3}

// setDesired notes the state that the orchestrator wants and acts on it. A note
// that cannot be written is tried again with the next answer.
func (r *run) setDesired(d DesiredState, reason string) {
	r.mu.Lock()
	if rank[d] <= rank[r.note.Desired] {
		r.mu.Unlock()
		return
	}
	n := r.note
	n.Desired, n.Reason = d, reason
	if err := n.write(r.dir); err != nil {
		r.mu.Unlock()
		r.log.Error("desired state could not be noted", "desired_state", string(d), "error", err)
		return
	}
	r.note = n
	r.mu.Unlock()
	r.log.Info("run has a new desired state", "desired_state", string(d), "reason", reason)
	r.applyDesired()
}

func (r *run) applyDesired() {
	r.mu.Lock()
	desired, reason, role := r.note.Desired, r.note.Reason, r.a.cfg.Role
	if desired == desiredRun && !r.leading {
		r.leading = true
		close(r.mayLead)
	}
	leading := r.leading
	r.mu.Unlock()
	switch {
	case desired == desiredAbort:
		if reason == "" {
			reason = "by command"
		}
		r.cancel(&executor.AbortError{By: "orchestrator", Reason: reason})
	case desired == desiredFinish && role != radio.RoleClient:
		r.cancel(executor.ErrFinish)
	case desired == desiredFinish && !leading:
		// A client that has to finish and never had to run has lost its state folder.
		r.cancel(&executor.AbortError{By: "orchestrator", Reason: "the run was finished without this node"})
	}
}

// An orchestrator that answers and no longer lists a run has ended it while this
// node was away. One such answer may come from one that is just starting.
const (
	minUnlisted = 2 // answers
	unlistedFor = 10 * time.Second
)

// setListed notes whether an answer listed the run. A client that leads is not
// stopped by its absence: its trials are worth more than a run that should have
// been stopped.
func (r *run) setListed(listed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if listed {
		r.unlisted = 0
		return
	}
	if r.unlisted++; r.unlisted == 1 {
		r.unlistedSince = time.Now()
	}
	if r.unlisted < minUnlisted || time.Since(r.unlistedSince) < unlistedFor || r.leading && r.a.cfg.Role == radio.RoleClient {
		return
	}
	if r.a.cfg.Role == radio.RoleClient {
		r.cancel(&executor.AbortError{By: "agent", Reason: "the orchestrator no longer lists the run"})
		return
	}
	r.cancel(executor.ErrFinish)
}

// run executes the run and delivers its journal. ctx is the agent's, ectx the
// execution's. When the disk fails meanwhile, it goes on, as after a start of the
// agent, when the disk works again.
func (r *run) run(ctx, ectx context.Context) error {
	defer func() {
		select {
		case <-r.ended:
		default:
			close(r.ended)
		}
	}()
	for {
		err := r.once(ctx, ectx)
		if ctx.Err() != nil || !r.outlastsDisk() || !diskFailed(err) {
			return err
		}
		if err := r.awaitDisk(ctx, err); err != nil {
			return err
		}
	}
}

// once is [run.run] until the disk fails.
func (r *run) once(ctx, ectx context.Context) (err error) {
	encoded, sheet, refused := r.readSheet()
	if diskFailed(refused) && r.outlastsDisk() {
		return refused
	}
	j, err := r.openJournal()
	if err != nil {
		return err
	}
	defer func() {
		if cerr := j.Close(); cerr != nil && !errors.Is(cerr, journal.ErrDiskFull) {
			err = errors.Join(err, cerr)
		}
	}()
	dctx, drop := context.WithCancel(ctx) // of the delivery
	defer drop()
	delivered := make(chan bool, 1)
	if r.a.session != nil {
		r.delivery = r.a.session.NewDelivery(r.id, j, refused == nil && sheet.Control == runsheet.ControlInBand)
		go func() { delivered <- r.delivery.Run(dctx, r.ended) }()
	} else {
		delivered <- false
	}
	over, err := ended(j)
	if err == nil && !over { // else only its delivery is left
		if err = refused; err == nil {
			x := &execution{run: r, encoded: encoded, sheet: sheet, journal: j}
			err = r.whileDiskWorks(ectx, j, x.execute)
		}
	}
	if r.outlastsDisk() && diskFailed(err) {
		drop()
		<-delivered
		return err
	}
	if err == nil || ctx.Err() == nil {
		err = r.closeJournal(j, err)
	}
	close(r.ended)
	if <-delivered && ctx.Err() == nil {
		stored, known := r.a.orchestratorTime() // before mu: it takes the agent's
		if !known {
			stored = r.a.cfg.Clock.Now().UTC()
		}
		r.mu.Lock()
		r.note.Stored = stored
		werr := r.note.write(r.dir)
		r.mu.Unlock()
		err = errors.Join(err, werr)
	}
	return err
}

// maxSheet bounds a run sheet, in bytes: more than one answer of the orchestrator holds.
const maxSheet = 64 << 20

// readSheet reads the run's sheet from the state folder, or reports why it must not
// be executed; the journal tells the orchestrator then.
func (r *run) readSheet() ([]byte, *runsheet.Sheet, error) {
	path := filepath.Join(r.dir, sheetFile)
	encoded, err := inputfile.Read(path, maxSheet)
	if err != nil {
		return nil, nil, fmt.Errorf("the run sheet is damaged or missing: %w; start the run anew", err)
	}
	sheet, err := r.checkSheet(encoded)
	if err != nil && runsheet.Hash(encoded) != r.hash {
		err = fmt.Errorf("the run sheet %s is damaged: its hash is %.12s…, the assignment says %.12s…; start the run anew (%w)", path, runsheet.Hash(encoded), r.hash, err)
	}
	return encoded, sheet, err
}

// openJournal opens the run's journal. Where it is damaged, or missing though the run
// had begun, the node can neither go on nor tell what it did: the orchestrator hears
// of it with the polls.
func (r *run) openJournal() (*journal.File, error) {
	cfg := r.a.cfg
	path := JournalPath(cfg.StateDir, r.id)
	r.mu.Lock()
	begun := r.note.Begun
	r.mu.Unlock()
	info, err := os.Stat(path)
	switch {
	case err == nil && !info.Mode().IsRegular():
		return nil, r.cannotGoOn("the journal "+path+" is damaged", fmt.Errorf("it is %s, expected a regular file", inputfile.Kind(info.Mode())))
	case begun && (errors.Is(err, os.ErrNotExist) || err == nil && info.Size() == 0):
		return nil, r.cannotGoOn("the journal "+path+" is missing", errors.New("the run had begun, and what it recorded is gone"))
	}
	options := journal.Options{FloorBytes: cfg.FloorBytes, Logger: r.log}
	if cfg.faultsPossible() {
		options.Clock, options.Boot = cfg.Clock, cfg.boot()
	}
	j, err := journal.Open(path, journal.Identity{Run: r.id, Node: cfg.Name, Role: cfg.Role}, options)
	switch {
	case diskFailed(err) && r.outlastsDisk():
		return nil, err
	case err != nil:
		return nil, r.cannotGoOn("the journal cannot be used", err)
	}
	r.noteBegun(j)
	return j, nil
}

// noteBegun notes that the run has begun, once a crash cannot take its first record
// away any more. An agent that is killed before has a journal without a record, and
// begins anew.
func (r *run) noteBegun(j *journal.File) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.note.Begun || j.Durable() == 0 {
		return
	}
	r.note.Begun = true
	if err := r.note.write(r.dir); err != nil {
		r.log.Warn("the note of the run could not be written", "error", err)
	}
}

// runJournal is the run's journal for the executor.
type runJournal struct {
	*journal.File
	run *run
}

// Sync implements [executor.Journal].
func (j runJournal) Sync() error {
	err := j.File.Sync()
	j.run.noteBegun(j.File)
	return err
}

// closeJournal completes the journal of a run that is over on this node, while its agent
// goes on; failed is why it could not be executed.
func (r *run) closeJournal(j *journal.File, failed error) error {
	over, _ := ended(j) // a journal that cannot be read has its error in failed
	if failed != nil && !over {
		// The orchestrator must know of it, or it waits for ever.
		_, err := j.Append(journal.TypeRunEnded, journal.RunEnded{End: journal.RunStopped, Reason: failed.Error()})
		failed = errors.Join(failed, err, runJournal{j, r}.Sync())
	}
	if err := j.DropReserve(); err != nil {
		r.log.Warn("reserve could not be given back", "error", err)
	}
	return failed
}

func interrupted(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// peers are the addresses of the agent's configuration, over those of the assignment.
func (r *run) peers() map[radio.Role]string {
	out := map[radio.Role]string{}
	for role, address := range r.assignment.GetRadioAddresses() {
		out[radio.Role(role)] = address
	}
	maps.Copy(out, r.a.cfg.Peers)
	return out
}
