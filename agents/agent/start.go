package agent

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"linktrial/agents/provenance"
	"linktrial/agents/radioonly"
	"linktrial/agents/session"
	"linktrial/agents/trust"
	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/inputfile"
	"linktrial/internal/watchdog"
)

// Run works for an orchestrator until ctx ends, and returns nil then. Runs
// that were unfinished when an earlier start ended are resumed at once,
// whether or not the orchestrator can be reached.
func Run(ctx context.Context, cfg Config) error {
	loop := watchdog.NewLoop("the loop that speaks with the orchestrator")
	cfg.Service.Watch(loop)
	instance := rand.Text() // of all of them: to the orchestrator it is one agent
	for {
		if err := runOnce(ctx, cfg, loop, instance); !errors.Is(err, errOtherRadio) || ctx.Err() != nil {
			if errors.Is(err, errOtherRadio) {
				return nil
			}
			return err
		}
	}
}

// runOnce is [Run] until the node has other radios: it returns errOtherRadio then, and what
// follows is as after a restart of the program.
func runOnce(ctx context.Context, cfg Config, loop *watchdog.Loop, instance string) error {
	ctx, again := context.WithCancelCause(ctx)
	defer again(nil)
	a, release, err := start(ctx, cfg)
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	defer release()
	a.again = again
	cfg.Service.Ready("started; the node enrols where it has no certificate")
	// First: enrolment brings the keys to trust.
	id, err := a.identity(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	a.certificate = id
	if a.trust, err = trust.Open(a.cfg.Trust); err != nil {
		return err
	}
	folder, err := folderIdentity(cfg.StateDir)
	if err != nil {
		return err
	}
	a.incarnation = folder + "/" + instance
	a.session, err = session.New(session.Config{
		URL: cfg.Orchestrator, Name: a.cfg.Name, Version: a.cfg.Version, Identity: id, Incarnation: a.incarnation, Logger: a.cfg.Logger,
		Clock: a.cfg.Clock, Loop: loop, Status: cfg.Service.Status,
		Disk:      func() int64 { n, _ := journal.FreeBytes(a.cfg.StateDir); return n },
		AddStatus: a.addStatus, Keys: a.learnKeys,
		Registered: func(r *linktrialv1.RegisterResponse, challenge []byte) {
			a.interfacesTold()
			a.learnRadio(r.Radio, challenge)
		},
		Refused: func(run string, err error) {
			a.addFault(fault{run, fmt.Sprintf("the orchestrator refuses the node's journal: %v; the journal is kept in %s on the node", err, filepath.Dir(JournalPath(cfg.StateDir, run)))})
		},
	})
	if err != nil {
		return err
	}
	defer a.session.Close()
	notes, bad, err := readNotes(a.cfg.runsDir())
	if err != nil {
		return err
	}
	for _, b := range bad {
		if diskFailed(b.err) { // it is not damaged: the next start reads it
			return fmt.Errorf("state folder: %w", b.err)
		}
	}
	a.setAsideAll(bad)
	if err := prune(a.cfg.runsDir(), notes, time.Time{}); err != nil { // by age when the orchestrator's time is known
		return err
	}
	for _, n := range notes {
		if !n.Stored.IsZero() {
			continue
		}
		a.cfg.Logger.Info("run of an earlier start is resumed", "run", n.Run, "desired_state", string(n.Desired))
		a.startRun(ctx, n)
	}
	a.checkRadio() // also where the orchestrator cannot be reached
	a.running.Go(func() { a.watchClock(ctx) })
	a.running.Go(func() { a.radio.watch(ctx, func() bool { return len(a.slot) == 0 }) })
	if a.cfg.inLab() {
		a.running.Go(func() { a.watchLab(ctx) })
	}
	if id != nil {
		a.running.Go(func() { a.watchIdentity(ctx, id) })
	}
	if a.radios != nil {
		a.running.Go(func() { a.watchRadios(ctx) })
	}
	a.session.Run(ctx, func() *linktrialv1.RegisterRequest { return a.registration(ctx) }, func(r session.Answer) bool { return a.applyAssignments(ctx, r) })
	a.running.Wait()
	if cause := context.Cause(ctx); errors.Is(cause, errOtherRadio) {
		return cause
	}
	return nil
}

// RunSheet executes one run from a file, without an orchestrator: the
// disconnected run. Beside the sheet lies its signature, at [SignaturePath]. The
// client's part returns when the run has ended; the
// others' when finish is closed. The journal is at [JournalPath]. Called again
// after a crash with the same run, it goes on where it was.
func RunSheet(ctx context.Context, cfg Config, runID, sheetPath string, finish <-chan struct{}) error {
	a, release, err := start(ctx, cfg)
	if err != nil {
		return err
	}
	defer release()
	if a.trust, err = trust.Open(a.cfg.Trust); err != nil {
		return err
	}
	sheet, err := inputfile.Read(sheetPath, maxSheet)
	if err != nil {
		return fmt.Errorf("run sheet: %w", err)
	}
	sig, err := readSignature(sheetPath)
	if err != nil {
		return err
	}
	n := note{Run: runID, SheetHash: runsheet.Hash(sheet), KeyID: sig.KeyID, Signature: sig.Bytes, Desired: desiredRun, Taken: a.cfg.Clock.Now().UTC()}
	if err := a.saveRun(n, sheet); err != nil {
		return err
	}
	r := a.startRun(ctx, n)
	select {
	case <-finish:
		r.setDesired(desiredFinish, "")
	case <-r.ended:
	}
	a.running.Wait()
	if r.err == nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return r.err
}

// start locks the state folder and ends what an earlier start left running.
func start(ctx context.Context, cfg Config) (*agent, func(), error) {
	if err := cfg.complete(); err != nil {
		return nil, nil, err
	}
	release, err := lock(cfg.StateDir)
	if err != nil {
		return nil, nil, err
	}
	a := &agent{node: node{cfg: cfg, slot: make(chan struct{}, 1)}, runs: map[string]*run{}}
	if err := a.openRadios(ctx); err != nil {
		release()
		return nil, nil, err
	}
	cfg = a.cfg
	a.radioOnly = radioonly.New(cfg.Name, cfg.Device)
	a.radio = &radioPoller{idle: a.cfg.poller(nil, nil, nil)}
	var closeDrivers func()
	if a.runner, closeDrivers, err = openDrivers(ctx, cfg, a.radioOnly); err != nil {
		release()
		return nil, nil, err
	}
	unlock := release
	release = func() {
		closeDrivers()
		unlock()
	}
	err = a.runner.Sweep(ctx)
	if err == nil {
		a.drivers, err = a.runner.List(ctx)
	}
	if err != nil {
		release()
		return nil, nil, err
	}
	return a, release, nil
}

// registration is what this node is and can run.
func (a *agent) registration(ctx context.Context) *linktrialv1.RegisterRequest {
	r := &linktrialv1.RegisterRequest{
		Role: string(a.cfg.Role), Version: a.cfg.Version, Radio: a.cfg.Radio,
		RadioAddress: a.cfg.RadioAddress,
	}
	r.Host, _ = os.Hostname()
	r.Kernel, _ = provenance.Kernel()
	r.DiskFreeBytes, _ = journal.FreeBytes(a.cfg.StateDir)
	a.addLab(ctx, r)
	a.registerInterfaces(ctx, r)
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, s := range a.drivers {
		d := &linktrialv1.DriverState{Name: s.Driver.Name, Version: s.Driver.Version, Implementation: s.Driver.Implementation,
			Sha256: s.Driver.SHA256, Digest: s.Driver.Digest, Unsupported: s.Driver.Unsupported, Choices: map[string]string{}, Remarks: s.Remarks()}
		for option, values := range s.Choices {
			d.Choices[option] = strings.Join(values, ",")
		}
		r.Drivers = append(r.Drivers, d)
	}
	return r
}
