package agent

import (
	"context"

	"linktrial/agents/provenance"
	"linktrial/executor/journal"
	"linktrial/internal/backoff"
)

// Begun implements [executor.Observer]. It records what the run starts from,
// once a run.
func (x *execution) Begun(ctx context.Context, recorded bool) error {
	defer func() {
		x.watchDisturbances(ctx)
		x.countControl(ctx)
		x.watcher.begin(ctx)
		if x.iface != nil {
			x.iface.Settled(ctx)
		}
		if x.begin != nil {
			x.begin()
		}
	}()
	n := x.run.node
	if recorded {
		if n.session == nil || !n.cfg.faultsPossible() {
			return nil
		}
		return compareAfterReboot(ctx, x.journal, n.session.Offset)
	}
	p, err := provenance.Gather(ctx)
	if err != nil {
		return err
	}
	states, err := n.runner.List(ctx)
	if err != nil {
		return err
	}
	n.mu.Lock()
	n.drivers = states
	n.mu.Unlock()
	for _, s := range states {
		p.Drivers = append(p.Drivers, s.Driver)
	}
	p.Linktrial, p.Place = n.cfg.Version, n.cfg.Place
	if n.cfg.inLab() {
		if p.Lab, err = x.labProof(ctx); err != nil {
			return err
		}
	}
	if _, err := x.journal.Append(journal.TypeProvenance, p); err != nil {
		return err
	}
	return x.recordClock(ctx, "before")
}

// labProof is the lab's proof for the run. Where the emulator does not answer, the run
// waits, and the node reports why, until it does or ctx ends: trials on anything but the
// lab's radios would not be what the results say.
func (x *execution) labProof(ctx context.Context) (*journal.LabProof, error) {
	n := x.run.node
	s := journal.LabStatement(x.run.id, x.run.hash, n.cfg.Role, n.cfg.RadioAddress)
	for {
		p, err := n.vouched(ctx, s)
		if err == nil {
			if n.setLabFault("") && n.session != nil {
				n.session.RegisterAgain()
			}
			return &journal.LabProof{LabProof: p, Role: n.cfg.Role, Address: n.cfg.RadioAddress}, nil
		}
		if n.setLabFault(err.Error()) {
			n.pollNow()
		}
		if !backoff.Sleep(ctx, labRetry) {
			return nil, err
		}
	}
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
	if x.watch != nil {
		x.watch.Flush()
	}
	x.watcher.between(ctx)
	x.silence.Boundary(ctx)
}

// Paused implements [executor.Observer].
func (x *execution) Paused(ctx context.Context) (resumed func(over bool)) {
	return x.silence.Paused(ctx)
}

// Waiting implements [executor.Observer].
func (x *execution) Waiting(fault string) {
	x.silence.Waiting(fault)
	x.run.node.noteWaiting(fault)
}

// Transfers implements [executor.Observer].
func (x *execution) Transfers(n int) {
	x.silence.Transfers(n)
	x.watcher.transfers(n)
}

// Closing implements [executor.Observer]. No trial will run any more: the control
// link may be used again.
func (x *execution) Closing(ctx context.Context) {
	x.run.node.noteWaiting("")
	x.unwatch()
	x.uncount()
	x.watcher.end(ctx)
	x.silence.Closing(ctx)
	if err := x.recordClock(ctx, "after"); err != nil {
		x.run.log.Warn("clock offset could not be recorded", "error", err)
	}
}

func (x *execution) recordClock(ctx context.Context, when string) error {
	o := journal.ClockOffset{When: when, Unknown: "no control link"}
	if s := x.run.node.session; s != nil {
		o = s.Offset(ctx, when)
	}
	_, err := x.journal.Append(journal.TypeClockOffset, o)
	return err
}
