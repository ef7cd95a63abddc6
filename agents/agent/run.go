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

	"linktrial/agents/provenance"
	"linktrial/agents/radiolink"
	"linktrial/agents/session"
	"linktrial/agents/trust"
	"linktrial/executor"
	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
)

// run is this node's part in one run.
type run struct {
	a      *agent
	id     string
	hash   string // of the sheet
	dir    string
	log    *slog.Logger
	cancel context.CancelCauseFunc // of the execution
	lead   chan struct{}           // closed when the client may lead
	ended  chan struct{}           // closed when the execution is over
	err    error                   // set before the goroutine ends

	mu      sync.Mutex
	note    note
	leading bool      // lead is closed
	missing time.Time // since when the orchestrator no longer lists the run
	misses  int

	desk     *desk
	delivery *session.Delivery
	speak    func() // takes the run's silence back, at most once
}

// wish notes what the orchestrator wants and acts on it. Wishes only ever go
// forward; a note that cannot be written is tried again with the next answer.
func (r *run) wish(w Wish, reason string) {
	rank := map[Wish]int{wishPrepare: 0, wishRun: 1, wishFinish: 2, wishAbort: 3}
	r.mu.Lock()
	if rank[w] <= rank[r.note.Wish] {
		r.mu.Unlock()
		return
	}
	n := r.note
	n.Wish, n.Reason = w, reason
	if err := n.write(r.dir); err != nil {
		r.mu.Unlock()
		r.log.Error("wish could not be noted", "wish", string(w), "error", err)
		return
	}
	r.note = n
	r.mu.Unlock()
	r.log.Info("run has a new wish", "wish", string(w), "reason", reason)
	r.apply()
}

func (r *run) apply() {
	r.mu.Lock()
	w, reason, role := r.note.Wish, r.note.Reason, r.a.cfg.Role
	if w == wishRun && !r.leading {
		r.leading = true
		close(r.lead)
	}
	leading := r.leading
	r.mu.Unlock()
	switch {
	case w == wishAbort:
		if reason == "" {
			reason = "by command"
		}
		r.cancel(&executor.AbortError{By: "orchestrator", Reason: reason})
	case w == wishFinish && role != radio.RoleClient:
		r.cancel(executor.ErrFinish)
	case w == wishFinish && !leading:
		// Without a word to run, a client that is told to finish lost its state folder.
		r.cancel(&executor.AbortError{By: "orchestrator", Reason: "the run was finished without this node"})
	}
}

// An orchestrator that answers and no longer lists a run has ended it while
// this node was away. One such answer may come from one that is just starting.
const (
	missesWanted = 2
	missingFor   = 10 * time.Second
)

// listed notes whether an answer listed the run. A client that leads is not
// stopped by that: its trials are worth more than a lost word.
func (r *run) listed(yes bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if yes {
		r.misses = 0
		return
	}
	if r.misses++; r.misses == 1 {
		r.missing = time.Now()
	}
	if r.misses < missesWanted || time.Since(r.missing) < missingFor || r.leading && r.a.cfg.Role == radio.RoleClient {
		return
	}
	if r.a.cfg.Role == radio.RoleClient {
		r.cancel(&executor.AbortError{By: "agent", Reason: "the orchestrator no longer lists the run"})
		return
	}
	r.cancel(executor.ErrFinish)
}

// through executes the run and delivers its journal. ctx is the agent's, ectx
// the execution's.
func (r *run) through(ctx, ectx context.Context) (err error) {
	defer func() {
		select {
		case <-r.ended:
		default:
			close(r.ended)
		}
	}()
	cfg := r.a.cfg
	sheet, err := os.ReadFile(filepath.Join(r.dir, sheetFile))
	if err != nil {
		return fmt.Errorf("run sheet: %w", err)
	}
	decoded, refused := r.admit(sheet)
	j, err := journal.Open(JournalPath(cfg.StateDir, r.id), journal.Identity{Run: r.id, Node: cfg.Name, Role: cfg.Role},
		journal.Options{FloorBytes: cfg.FloorBytes, Logger: r.log})
	if err != nil {
		return err
	}
	defer func() {
		if cerr := j.Close(); cerr != nil && !errors.Is(cerr, journal.ErrDiskFull) {
			err = errors.Join(err, cerr)
		}
	}()
	inBand := refused == nil && decoded.Control == runsheet.ControlInBand
	delivered := make(chan bool, 1)
	if r.a.session != nil {
		r.delivery = r.a.session.NewDelivery(r.id, j, inBand)
		go func() { delivered <- r.delivery.Run(ctx, r.ended) }()
	} else {
		delivered <- false
	}
	over, err := ended(j)
	if err == nil && !over { // else only its delivery is left
		if err = refused; err == nil {
			err = r.execute(ectx, sheet, decoded, j, inBand)
		}
	}
	if err == nil || ctx.Err() == nil {
		if err != nil && !interrupted(err) {
			// The orchestrator must hear of it, or it waits for ever.
			_, aerr := j.Append(journal.TypeRunEnded, journal.RunEnded{End: journal.RunStopped, Reason: err.Error()})
			err = errors.Join(err, aerr, j.Sync())
		}
		if derr := j.DropReserve(); derr != nil {
			r.log.Warn("reserve could not be given back", "error", derr)
		}
	}
	close(r.ended)
	if <-delivered && ctx.Err() == nil {
		r.mu.Lock()
		r.note.Stored = time.Now().UTC()
		werr := r.note.write(r.dir)
		r.mu.Unlock()
		err = errors.Join(err, werr)
	}
	return err
}

func interrupted(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// execute runs this node's part when no other run does.
func (r *run) execute(ctx context.Context, sheet []byte, decoded *runsheet.Sheet, j *journal.File, inBand bool) error {
	select {
	case r.a.slot <- struct{}{}:
		defer func() { <-r.a.slot }()
	case <-ctx.Done():
		// Ended before its turn: the executor still writes the journal's end.
		select {
		case r.a.slot <- struct{}{}:
			defer func() { <-r.a.slot }()
		default:
			if interrupted(context.Cause(ctx)) {
				return context.Cause(ctx)
			}
		}
	}
	cfg := r.a.cfg
	guard := &trust.Guard{Runner: r.a.runner, Drivers: r.a.runner, Sheet: decoded, Refused: func(err error) { r.cancel(err) }}
	if ctx.Err() == nil {
		if err := guard.CheckAll(ctx, func(t *runsheet.Treatment) bool { return needs(decoded, t, cfg.Role) }); err != nil {
			return err
		}
	}
	w := r.newWatcher(&decoded.Radio, j)
	defer w.stop()
	ex := executor.Config{
		RunID: r.id, Role: cfg.Role, Sheet: sheet, SheetHash: r.hash, Version: cfg.Version,
		Address: cfg.RadioAddress, Peers: r.peers(), Device: cfg.Device,
		Journal: j, Runner: guard, Logger: cfg.Logger,
		Begun:   func(ctx context.Context, resumed bool) error { return r.begun(ctx, j, w, resumed) },
		Closing: func(ctx context.Context) { r.closing(ctx, j, w) },
	}
	r.speak = func() {}
	defer func() { r.speak() }()
	silent := inBand && r.a.session != nil
	if cfg.RadioControl != "" && cfg.Role != radio.RoleClient && !silent {
		ex.TakeAssignments = func(ctx context.Context, c *executor.Carrier) {
			takeAssignments(ctx, sourcePath(cfg.RadioControl, cfg.Role), r.log, c)
		}
	}
	switch cfg.Role {
	case radio.RoleClient:
		ex.Go = r.lead
		ex.Between = w.between
		ex.Commands = r.desk
		if cfg.RadioControl != "" {
			link := radiolink.New(cfg.RadioControl)
			defer func() { _ = link.Close() }() // the run is over either way
			ex.Radio = link
			ex.CaptureFile = func(trial, attempt int) string {
				return filepath.Join(r.dir, fmt.Sprintf("trial-%04d-%d.pcapng", trial, attempt))
			}
			if !silent { // an agent that must not speak delivers no samples of a relay either
				ex.Sources = sources{cfg.RadioControl}
			}
		}
		if silent {
			ex.Leading = func(context.Context) { r.silence() }
			ex.Holding = r.hold
			window := cfg.Window
			ex.Between = func(ctx context.Context) {
				w.between(ctx)
				if !r.a.session.Window(ctx, window, r.delivery.CaughtUp) {
					window = max(window, min(2*window, windowMost))
				}
			}
		}
		return executor.Lead(ctx, ex)
	case radio.RoleServer:
		ex.Activity = w.activity
		if silent {
			q := newQuiet(r, decoded, j)
			ex.Activity = func(transfers int) { q.activity(transfers); w.activity(transfers) }
			defer q.watch(ctx)()
		}
		return executor.Serve(ctx, ex)
	default:
		if silent {
			return r.attendInBand(ctx, ex, decoded)
		}
		return executor.Attend(ctx, ex)
	}
}

// peers are the addresses the agent was told, over those of the assignment.
func (r *run) peers() map[radio.Role]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := maps.Clone(r.note.Addresses)
	if out == nil {
		out = map[radio.Role]string{}
	}
	maps.Copy(out, r.a.cfg.Peers)
	return out
}

// silence holds the session's calls back until speak.
func (r *run) silence() {
	r.a.session.Silence()
	r.speak = sync.OnceFunc(r.a.session.Speak)
}

// begun records what the run starts from, once a run.
func (r *run) begun(ctx context.Context, j *journal.File, w *watcher, resumed bool) error {
	defer w.begin(ctx)
	if resumed {
		return nil
	}
	p, err := provenance.Gather(ctx)
	if err != nil {
		return err
	}
	states, err := r.a.runner.List(ctx)
	if err != nil {
		return err
	}
	r.a.mu.Lock()
	r.a.drivers = states
	r.a.mu.Unlock()
	for _, s := range states {
		p.Drivers = append(p.Drivers, s.Driver)
	}
	p.Linktrial, p.Place = r.a.cfg.Version, r.a.cfg.Place
	if _, err := j.Append(journal.TypeProvenance, p); err != nil {
		return err
	}
	return r.clock(ctx, j, "before")
}

// closing comes when no trial will run any more: the control link may be used again.
func (r *run) closing(ctx context.Context, j *journal.File, w *watcher) {
	w.end(ctx)
	r.speak()
	if err := r.clock(ctx, j, "after"); err != nil {
		r.log.Warn("clock offset could not be noted", "error", err)
	}
}

func (r *run) clock(ctx context.Context, j *journal.File, when string) error {
	o := journal.ClockOffset{When: when, Unknown: "no control link"}
	if r.a.session != nil {
		o = r.a.session.Offset(ctx, when)
	}
	_, err := j.Append(journal.TypeClockOffset, o)
	return err
}
