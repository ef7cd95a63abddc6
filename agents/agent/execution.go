package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"linktrial/agents/provenance"
	"linktrial/agents/radiolink"
	"linktrial/agents/silence"
	"linktrial/agents/trust"
	"linktrial/executor"
	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
)

// execution is this node's part in a run while it is executed: it gives the
// executor what it needs, and observes it.
type execution struct {
	run     *run
	encoded []byte // the sheet
	sheet   *runsheet.Sheet
	journal *journal.File
	watcher *watcher
	silence executor.Observer // keeps calls off the radio while trials run
}

// execute runs this node's part when no other run's is executed.
func (x *execution) execute(ctx context.Context) error {
	release, err := x.acquireSlot(ctx)
	if err != nil {
		return err
	}
	defer release()
	r, a := x.run, x.run.a
	guard := &trust.Guard{Runner: a.runner, Drivers: a.runner, Sheet: x.sheet, Refused: func(err error) { r.cancel(err) }}
	if ctx.Err() == nil {
		if err := guard.CheckAll(ctx, a.cfg.Role); err != nil {
			return err
		}
	}
	x.watcher = r.newWatcher(&x.sheet.Radio, x.journal)
	defer x.watcher.stop()
	x.silence = executor.NopObserver{}
	cfg := executor.Config{
		RunID: r.id, Role: a.cfg.Role, Sheet: x.encoded, SheetHash: r.hash, Version: a.cfg.Version,
		Address: a.cfg.RadioAddress, Peers: r.peers(), Device: a.cfg.Device, Place: a.cfg.Place,
		Journal: x.journal, Runner: guard, Logger: a.cfg.Logger, Observer: x,
	}
	logs, release := r.logFolder()
	defer release()
	cfg.LogFolder = logs
	if device := a.cfg.Device; device != "" {
		cfg.Sent = func() (int64, error) { return provenance.SentBytes(device) }
	}
	switch a.cfg.Role {
	case radio.RoleClient:
		return x.lead(ctx, cfg)
	case radio.RoleServer:
		return x.serve(ctx, cfg)
	default:
		return x.attend(ctx, cfg)
	}
}

// LogsFolder is the folder of a run, beside its journal, for the logs that drivers
// write of transfers.
const LogsFolder = "logs"

// logFolder makes the run's folder for logs of drivers; release removes it where none
// was written. Without one the run goes on: drivers that were to write logs say so.
func (r *run) logFolder() (path string, release func()) {
	path, err := filepath.Abs(filepath.Join(r.dir, LogsFolder))
	if err == nil {
		if err = os.Mkdir(path, 0o755); errors.Is(err, os.ErrExist) {
			err = nil
		}
	}
	if err != nil {
		r.log.Warn("the folder for logs of drivers could not be made", "error", err)
		return "", func() {}
	}
	return path, func() { _ = os.Remove(path) } // fails where it has files, as it should
}

// acquireSlot waits for the agent's only slot; release gives it back. A run that
// was ended for good before its turn needs none: the executor only writes the
// journal's end.
func (x *execution) acquireSlot(ctx context.Context) (release func(), err error) {
	slot := x.run.a.slot
	release = func() { <-slot }
	select {
	case slot <- struct{}{}:
		return release, nil
	case <-ctx.Done():
	}
	select {
	case slot <- struct{}{}:
		return release, nil
	default:
	}
	if interrupted(context.Cause(ctx)) {
		return nil, context.Cause(ctx)
	}
	return func() {}, nil
}

// inBand reports whether control traffic shares the radio with the trials.
func (x *execution) inBand() bool {
	return x.sheet.Control == runsheet.ControlInBand && x.run.a.session != nil
}

func (x *execution) lead(ctx context.Context, cfg executor.Config) error {
	r, a := x.run, x.run.a
	cfg.Commands = r.commands
	if control := a.cfg.RadioControl; control != "" {
		link := radiolink.New(control)
		defer func() { _ = link.Close() }() // the run is over either way
		cfg.Radio = link
		cfg.CaptureFile = func(trial, attempt int) string {
			return filepath.Join(r.dir, fmt.Sprintf("trial-%04d-%d.pcapng", trial, attempt))
		}
		if !x.inBand() { // a relay that is silent delivers no samples
			cfg.Sources = sources{control}
		}
	}
	if x.inBand() {
		leader := silence.NewLeader(a.session.Gate(), r.delivery, a.cfg.Window)
		defer leader.End()
		x.silence = leader
	}
	return executor.Lead(ctx, cfg)
}

func (x *execution) serve(ctx context.Context, cfg executor.Config) error {
	if !x.inBand() {
		cfg.TakeAssignments = x.takeAssignments()
		return executor.Serve(ctx, cfg)
	}
	server := silence.NewServer(x.run.a.session.Gate(), x.run.delivery, x.journal, x.sheet)
	x.silence = server
	defer server.Start(ctx)()
	return executor.Serve(ctx, cfg)
}

func (x *execution) attend(ctx context.Context, cfg executor.Config) error {
	if !x.inBand() {
		cfg.TakeAssignments = x.takeAssignments()
		return executor.Attend(ctx, cfg)
	}
	return silence.NewRelay(x.run.a.session.Gate(), x.run.delivery, x.journal, x.sheet).Attend(ctx, cfg)
}

// takeAssignments takes the leading node's assignments where nodes can reach
// each other; nil elsewhere.
func (x *execution) takeAssignments() func(context.Context, executor.Carrier) {
	cfg := x.run.a.cfg
	if cfg.RadioControl == "" {
		return nil
	}
	return func(ctx context.Context, c executor.Carrier) {
		takeAssignments(ctx, sourcePath(cfg.RadioControl, cfg.Role), x.run.log, c)
	}
}

// Begun implements [executor.Observer]. It records what the run starts from,
// once a run.
func (x *execution) Begun(ctx context.Context, recorded bool) error {
	defer x.watcher.begin(ctx)
	if recorded {
		return nil
	}
	a := x.run.a
	p, err := provenance.Gather(ctx)
	if err != nil {
		return err
	}
	states, err := a.runner.List(ctx)
	if err != nil {
		return err
	}
	a.mu.Lock()
	a.drivers = states
	a.mu.Unlock()
	for _, s := range states {
		p.Drivers = append(p.Drivers, s.Driver)
	}
	p.Linktrial, p.Place = a.cfg.Version, a.cfg.Place
	if _, err := x.journal.Append(journal.TypeProvenance, p); err != nil {
		return err
	}
	return x.recordClock(ctx, "before")
}

// Leading implements [executor.Observer]. It waits until the orchestrator wants
// the run to begin.
func (x *execution) Leading(ctx context.Context) {
	select {
	case <-x.run.mayLead:
		x.silence.Leading(ctx)
	case <-ctx.Done():
	}
}

// Boundary implements [executor.Observer].
func (x *execution) Boundary(ctx context.Context) {
	x.watcher.between(ctx)
	x.silence.Boundary(ctx)
}

// Paused implements [executor.Observer].
func (x *execution) Paused(ctx context.Context) (resumed func()) { return x.silence.Paused(ctx) }

// Transfers implements [executor.Observer].
func (x *execution) Transfers(n int) {
	x.silence.Transfers(n)
	x.watcher.transfers(n)
}

// Closing implements [executor.Observer]. No trial will run any more: the control
// link may be used again.
func (x *execution) Closing(ctx context.Context) {
	x.watcher.end(ctx)
	x.silence.Closing(ctx)
	if err := x.recordClock(ctx, "after"); err != nil {
		x.run.log.Warn("clock offset could not be recorded", "error", err)
	}
}

func (x *execution) recordClock(ctx context.Context, when string) error {
	o := journal.ClockOffset{When: when, Unknown: "no control link"}
	if s := x.run.a.session; s != nil {
		o = s.Offset(ctx, when)
	}
	_, err := x.journal.Append(journal.TypeClockOffset, o)
	return err
}
