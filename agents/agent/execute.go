package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"linktrial/agents/host"
	"linktrial/agents/netif"
	"linktrial/agents/provenance"
	"linktrial/agents/radiolink"
	"linktrial/agents/silence"
	"linktrial/agents/trust"
	"linktrial/executor"
	"linktrial/internal/radio"
)

// execute runs this node's part when no other run's is executed.
func (x *execution) execute(ctx context.Context) error {
	release, err := x.acquireSlot(ctx)
	if err != nil {
		return err
	}
	defer release()
	r, n := x.run, x.run.node
	starts := newConfigurers(n.runner, n.mayConfigure)
	guard := &trust.Guard{Runner: starts.runner(), Drivers: n.runner, Sheet: x.sheet, Refused: func(err error) { r.cancel(err) }}
	if ctx.Err() == nil {
		err := guard.CheckAll(ctx, n.cfg.Role)
		switch {
		case ctx.Err() == nil && err != nil:
			return err
		case interrupted(context.Cause(ctx)):
			return context.Cause(ctx)
		}
		// What a finish or an abort cut short says nothing of the drivers, and the
		// executor writes the journal's end.
	}
	x.watcher = r.newWatcher(&x.sheet.Radio, x.sheet.Valid, x.journal)
	defer x.watcher.stop()
	defer x.unwatch()
	defer x.uncount()
	x.silence = executor.NopObserver{}
	x.radios = x.findRadios()
	if err := n.radioOnly.Use(x.devices()...); err != nil {
		r.log.Debug("drivers cannot be kept to the radios", "error", err) // the first driver fails, or says so
	}
	cfg := executor.Config{
		RunID: r.id, Role: n.cfg.Role, Sheet: x.encoded, SheetHash: r.hash, Version: n.cfg.Version,
		Address: n.cfg.RadioAddress, Peers: r.peers(), Device: n.cfg.Device, Place: n.cfg.Place,
		Journal: runJournal{x.journal, r}, Runner: guard, Logger: n.cfg.Logger, Observer: x,
		JudgementWait: n.cfg.JudgementWait, Forwards: x.forwards(),
	}
	if n.cfg.faultsPossible() {
		alive, dead := r.keepAlive(ctx, x.journal)
		defer dead()
		cfg.Alive = alive
		stalls, end := watchStalls(ctx)
		defer end()
		cfg.Stalls = stalls
		if n.cfg.Role == radio.RoleClient {
			load := host.Start()
			defer load.Stop()
			cfg.Host = load
		}
		if n.cfg.Device != "" {
			defer x.timePackets(&cfg)()
		}
	}
	if n.cfg.Device != "" {
		iface, end, err := netif.Start(ctx, netif.Config{Radios: x.radios, Quiet: !n.cfg.faultsPossible(), May: starts.names, Logger: r.log})
		if err != nil {
			return err
		}
		defer end()
		x.iface, cfg.Interface = iface, iface
		defer n.noteInterface(iface)()
		cfg.Sent = x.counter(provenance.SentBytes)
		if !n.cfg.emulated() {
			cfg.Received = x.counter(provenance.ReceivedBytes)
		}
	}
	x.reachPaths(&cfg)
	logs, release := r.logFolder()
	defer release()
	cfg.LogFolder = logs
	switch n.cfg.Role {
	case radio.RoleClient:
		return x.lead(ctx, cfg)
	case radio.RoleServer:
		return x.serve(ctx, cfg)
	default:
		return x.attend(ctx, cfg)
	}
}

// acquireSlot waits for the agent's only slot; release gives it back. A run that
// was ended for good before its turn needs none: the executor only writes the
// journal's end.
func (x *execution) acquireSlot(ctx context.Context) (release func(), err error) {
	slot := x.run.node.slot
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

// counter counts bytes of the node's radios.
func (x *execution) counter(of func(device string) (int64, error)) func() (int64, error) {
	devices := x.devices()
	return func() (sum int64, err error) {
		for _, d := range devices {
			n, err := of(d)
			if err != nil {
				return 0, err
			}
			sum += n
		}
		return sum, nil
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

func (x *execution) lead(ctx context.Context, cfg executor.Config) error {
	r, n := x.run, x.run.node
	cfg.Commands = r.commands
	if control := n.cfg.RadioControl; control != "" {
		link := radiolink.New(control)
		defer func() { _ = link.Close() }() // the run is over either way
		cfg.Radio = link
		if !n.cfg.faultsPossible() {
			cfg.Radio = struct { // whose end nobody watches
				executor.Radio
				executor.RadioSettler
			}{link, link}
		}
		cfg.CaptureFile = func(trial, attempt int) string {
			return filepath.Join(r.dir, fmt.Sprintf("trial-%04d-%d.pcapng", trial, attempt))
		}
		if !x.inBand() { // a relay that is silent delivers no samples
			cfg.Sources = sources{control}
		}
	}
	if x.inBand() {
		if proof := x.proof(ctx); proof != nil {
			defer func() { _ = proof.Close() }() // nothing was written
			cfg.Control = proof
		}
		leader := silence.NewLeader(n.session.Gate(), r.delivery, n.cfg.Window, x.sheet.WindowShare(), cfg.Control)
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
	server := silence.NewServer(x.run.node.session.Gate(), x.run.delivery, x.journal, x.sheet, x.flush)
	x.silence = server
	stop := func() {}
	x.begin = func() { stop = server.Start(ctx) } // until then the node prepares, and calls
	defer func() { stop() }()
	return executor.Serve(ctx, cfg)
}

func (x *execution) attend(ctx context.Context, cfg executor.Config) error {
	if !x.inBand() {
		cfg.TakeAssignments = x.takeAssignments()
		return executor.Attend(ctx, cfg)
	}
	return silence.NewRelay(x.run.node.session.Gate(), x.run.delivery, x.journal, x.sheet, x.flush).Attend(ctx, cfg, x.busy(cfg.Sent))
}

// busy tells a relay whether trials run: emulated radios know it, and elsewhere the node
// sees their packets where they pass it; nil: nothing tells.
func (x *execution) busy(sent func() (int64, error)) silence.Busy {
	if control := x.run.node.cfg.RadioControl; control != "" {
		return radiolink.Busy(control)
	}
	if sent != nil && (len(x.sheet.Listeners(radio.RoleRelay)) > 0 || netif.Forwards(x.run.node.cfg.interfaces()...)) {
		return silence.Forwarding(x.sheet, sent, x.controlBytes)
	}
	return nil
}

// takeAssignments takes the leading node's assignments where nodes can reach
// each other; nil elsewhere.
func (x *execution) takeAssignments() func(context.Context, executor.Carrier) {
	cfg := x.run.node.cfg
	if cfg.RadioControl == "" {
		return nil
	}
	return func(ctx context.Context, c executor.Carrier) {
		takeAssignments(ctx, sourcePath(cfg.RadioControl, cfg.Role), x.run.log, c)
	}
}

func interrupted(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}
