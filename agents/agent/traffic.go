package agent

import (
	"context"
	"io"
	"net"
	"net/netip"
	"slices"

	"linktrial/agents/disturbance"
	"linktrial/agents/host"
	"linktrial/agents/packettimes"
	"linktrial/agents/silence"
	"linktrial/executor"
	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
)

// timePackets notes when packets of transfers leave the node, where some start here over
// real radios, and when they arrive where it listens: emulated radios tell more themselves.
// Without it a run goes on, and says so. The returned function ends it.
func (x *execution) timePackets(cfg *executor.Config) (end func()) {
	var closers []io.Closer
	started := func(c io.Closer, err error) bool {
		if err != nil {
			x.run.log.Warn("drivers' times are not held against packets", "error", err)
			return false
		}
		closers = append(closers, c)
		return true
	}
	if !x.run.node.cfg.emulated() {
		if x.starts() {
			if sent, err := packettimes.StartSent(x.devices()...); started(sent, err) {
				cfg.PacketsSent = sent
			}
		}
		if cfg.Role == radio.RoleServer {
			if arrived, err := packettimes.StartArrived(x.devices()...); started(arrived, err) {
				cfg.PacketsArrived = arrived
			}
		}
	}
	return func() {
		for _, c := range closers {
			_ = c.Close() // nothing was written
		}
	}
}

// starts reports whether transfers start on this node.
func (x *execution) starts() bool {
	here := func(f runsheet.Flow) bool { return f.ClientAt() == x.run.node.cfg.Role }
	return slices.ContainsFunc(x.sheet.Trials, func(t runsheet.Trial) bool { return slices.ContainsFunc(t.Flows, here) })
}

// countTraffic counts the traffic of listeners' ports over real radios: emulated ones count
// themselves. Where that cannot be done a run goes on, and its attempts say so. The returned
// function ends it.
func (x *execution) countTraffic() (ports disturbance.Ports, end func()) {
	if cfg := &x.run.node.cfg; cfg.emulated() || cfg.Device == "" || slices.ContainsFunc(x.devices(), loopback) {
		return nil, func() {}
	}
	t, err := packettimes.StartTraffic(x.devices()...)
	if err != nil {
		x.run.log.Warn("other traffic on the radio is not noticed", "error", err)
		return uncounted{err}, func() {}
	}
	return t, func() { _ = t.Close() } // nothing was written
}

// loopback reports whether an interface is no radio, but has all traffic of the machine.
func loopback(device string) bool {
	i, err := net.InterfaceByName(device)
	return err == nil && i.Flags&net.FlagLoopback != 0
}

// uncounted is traffic that cannot be counted.
type uncounted struct{ why error }

func (u uncounted) Attach() error { return u.why }

func (u uncounted) Each(func(port int, b packettimes.Bytes)) error { return u.why }

// apart are the ends of what asks the radio for its readings, and is not on the air, and of
// the control traffic: where that shares the radio, it is counted for itself, and where it
// does not, the interface may lead to both.
func (x *execution) apart(ctx context.Context) (out []netip.AddrPort) {
	if n := x.run.node; n.session != nil {
		control, err := silence.Ends(ctx, n.cfg.Orchestrator)
		if err != nil {
			x.run.log.Warn("control traffic counts as other traffic on the radio's interface", "error", err)
		}
		out = append(out, control...)
	}
	for _, a := range x.run.telemetryAddresses(&x.sheet.Radio) {
		if end, err := netip.ParseAddrPort(a); err == nil {
			out = append(out, end)
		}
	}
	return out
}

// watchDisturbances begins to watch what rules of validity are about, and over real radios
// what else is on the air.
func (x *execution) watchDisturbances(ctx context.Context) {
	cfg := x.run.node.cfg
	ports, end := x.countTraffic()
	x.endTraffic = end
	if x.sheet.Valid == nil && ports == nil {
		return
	}
	var measure func() (end func() journal.HostWatched)
	if cfg.Role != radio.RoleClient && !cfg.emulated() && x.sheet.Valid != nil && x.sheet.Valid.HostShare > 0 { // in a lab it is the leading node's machine
		x.load = host.Start()
		measure = func() (end func() journal.HostWatched) {
			return x.load.BeginSpan(executor.TolerableLateness(x.sheet.Network))
		}
	}
	x.watch = disturbance.Start(ctx, disturbance.Config{
		Host: measure, Rules: x.sheet.Valid, Devices: x.devices(), Ports: ports, Apart: x.apart(ctx), Leading: cfg.Role == radio.RoleClient, Virtual: !cfg.faultsPossible(), Logger: x.run.log, Clocks: cfg.Clock.Read,
		Record: func(w journal.Watched, durable bool) {
			_, err := x.journal.Append(journal.TypeWatched, w)
			if err == nil && durable {
				err = x.journal.Sync()
			}
			if err != nil { // the executor meets the same fault, and acts on it
				x.run.log.Debug("what was watched was not taken by the journal", "error", err)
			}
		},
	})
}

// unwatch ends that, and writes what was noticed last.
func (x *execution) unwatch() {
	if x.watch != nil {
		x.watch.Stop()
		x.watch = nil
		if x.load != nil {
			x.load.Stop()
			x.load = nil
		}
	}
	if x.endTraffic != nil {
		x.endTraffic()
		x.endTraffic = nil
	}
}

// inBand reports whether control traffic shares the radio with the trials.
func (x *execution) inBand() bool {
	return x.sheet.Control == runsheet.ControlInBand && x.run.node.session != nil
}

// proof counts control packets; nil: they cannot be counted, and the log says why.
func (x *execution) proof(ctx context.Context) *silence.Proof {
	proof, err := silence.NewProof(ctx, x.run.node.cfg.Orchestrator)
	if err != nil {
		x.run.log.Warn("the run goes on; its results do not say that this node was silent", "error", err)
		return nil
	}
	return proof
}

// countControl counts control packets on a node that does not lead, until uncount.
func (x *execution) countControl(ctx context.Context) {
	if !x.inBand() || x.run.node.cfg.Role == radio.RoleClient {
		return
	}
	if proof := x.proof(ctx); proof != nil {
		x.count.Store(silence.StartCount(ctx, proof, x.run.log, func(c journal.ControlCounted) error {
			_, err := x.journal.Append(journal.TypeControlCounted, c)
			return err
		}))
	}
}

// uncount ends that, and writes what was counted last.
func (x *execution) uncount() {
	if c := x.count.Swap(nil); c != nil {
		c.Stop()
	}
}

// controlBytes is how many bytes of control packets have passed since they are counted.
func (x *execution) controlBytes() int64 {
	if c := x.count.Load(); c != nil {
		return c.Bytes()
	}
	return 0
}

// flush makes durable what was counted: only that is delivered.
func (x *execution) flush() {
	if c := x.count.Load(); c != nil {
		c.Flush()
	}
	_ = x.journal.Sync() // the executor meets the same error, and acts on it
}
