package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"

	"linktrial/agents/disturbance"
	"linktrial/agents/host"
	"linktrial/agents/netif"
	"linktrial/agents/packettimes"
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
	run        *run
	encoded    []byte // the sheet
	sheet      *runsheet.Sheet
	journal    *journal.File
	watcher    *watcher
	silence    executor.Observer             // keeps calls off the radio while trials run
	begin      func()                        // called when the part has begun; nil: nothing
	radios     []netif.Radio                 // of this node that the run uses, first that of --device
	iface      *netif.Watches                // of the radios; nil: nobody watches them
	watch      *disturbance.Watch            // nil: nothing needs it
	endTraffic func()                        // ends the count of traffic; nil: there is none
	load       *host.Watch                   // of a node that does not lead; nil: no rule needs it
	count      atomic.Pointer[silence.Count] // of control traffic; nil: it is not counted here
}

// execute runs this node's part when no other run's is executed.
func (x *execution) execute(ctx context.Context) error {
	release, err := x.acquireSlot(ctx)
	if err != nil {
		return err
	}
	defer release()
	r, a := x.run, x.run.a
	starts := newConfigurers(a.runner, a.mayConfigure)
	guard := &trust.Guard{Runner: starts.runner(), Drivers: a.runner, Sheet: x.sheet, Refused: func(err error) { r.cancel(err) }}
	if ctx.Err() == nil {
		err := guard.CheckAll(ctx, a.cfg.Role)
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
	if err := a.radioOnly.Use(x.devices()...); err != nil {
		r.log.Debug("drivers cannot be kept to the radios", "error", err) // the first driver fails, or says so
	}
	cfg := executor.Config{
		RunID: r.id, Role: a.cfg.Role, Sheet: x.encoded, SheetHash: r.hash, Version: a.cfg.Version,
		Address: a.cfg.RadioAddress, Peers: r.peers(), Device: a.cfg.Device, Place: a.cfg.Place,
		Journal: runJournal{x.journal, r}, Runner: guard, Logger: a.cfg.Logger, Observer: x,
		JudgementWait: a.cfg.JudgementWait,
	}
	if !a.cfg.emulated() {
		cfg.Forwards = x.forwards()
	}
	if x.run.a.cfg.faultsPossible() {
		alive, dead := r.keepAlive(ctx, x.journal)
		defer dead()
		cfg.Alive = alive
		stalls, end := watchStalls(ctx)
		defer end()
		cfg.Stalls = stalls
		if a.cfg.Role == radio.RoleClient {
			load := host.Start()
			defer load.Stop()
			cfg.Host = load
		}
		if a.cfg.Device != "" {
			defer x.timePackets(&cfg)()
		}
	}
	if a.cfg.Device != "" {
		iface, end, err := netif.Start(ctx, netif.Config{Radios: x.radios, Quiet: !a.cfg.faultsPossible(), May: starts.names, Logger: r.log})
		if err != nil {
			return err
		}
		defer end()
		x.iface, cfg.Interface = iface, iface
		defer a.noteInterface(iface)()
	}
	x.reachPaths(&cfg)
	logs, release := r.logFolder()
	defer release()
	cfg.LogFolder = logs
	if device := a.cfg.Device; device != "" {
		cfg.Sent = x.counter(provenance.SentBytes)
		if place := a.cfg.Place; place != journal.PlaceEmulated && place != journal.PlaceVirtual {
			cfg.Received = x.counter(provenance.ReceivedBytes)
		}
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
	if !x.run.a.cfg.emulated() {
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
	here := func(f runsheet.Flow) bool { return f.ClientAt() == x.run.a.cfg.Role }
	return slices.ContainsFunc(x.sheet.Trials, func(t runsheet.Trial) bool { return slices.ContainsFunc(t.Flows, here) })
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
		if !x.run.a.cfg.faultsPossible() {
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
		leader := silence.NewLeader(a.session.Gate(), r.delivery, a.cfg.Window, x.sheet.WindowShare(), cfg.Control)
		defer leader.End()
		x.silence = leader
	}
	return executor.Lead(ctx, cfg)
}

// proof counts control packets; nil: they cannot be counted, and the log says why.
func (x *execution) proof(ctx context.Context) *silence.Proof {
	proof, err := silence.NewProof(ctx, x.run.a.cfg.Orchestrator)
	if err != nil {
		x.run.log.Warn("the run goes on; its results do not say that this node was silent", "error", err)
		return nil
	}
	return proof
}

// countControl counts control packets on a node that does not lead, until uncount.
func (x *execution) countControl(ctx context.Context) {
	if !x.inBand() || x.run.a.cfg.Role == radio.RoleClient {
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

func (x *execution) serve(ctx context.Context, cfg executor.Config) error {
	if !x.inBand() {
		cfg.TakeAssignments = x.takeAssignments()
		return executor.Serve(ctx, cfg)
	}
	server := silence.NewServer(x.run.a.session.Gate(), x.run.delivery, x.journal, x.sheet, x.flush)
	x.silence = server
	stop := func() {}
	x.begin = func() { stop = server.Start(ctx) } // until then the node prepares, and calls
	defer func() { stop() }()
	return executor.Serve(ctx, cfg)
}

// noteInterface notes the watch of the run that is executed, until done.
func (a *agent) noteInterface(w *netif.Watches) (done func()) {
	set := func(w *netif.Watches) {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.iface = w
	}
	set(w)
	return func() { set(nil) }
}

func (x *execution) attend(ctx context.Context, cfg executor.Config) error {
	if !x.inBand() {
		cfg.TakeAssignments = x.takeAssignments()
		return executor.Attend(ctx, cfg)
	}
	return silence.NewRelay(x.run.a.session.Gate(), x.run.delivery, x.journal, x.sheet, x.flush).Attend(ctx, cfg, x.busy(cfg.Sent))
}

// busy tells a relay whether trials run: emulated radios know it, and elsewhere the node
// sees their packets where they pass it; nil: nothing tells.
func (x *execution) busy(sent func() (int64, error)) silence.Busy {
	if control := x.run.a.cfg.RadioControl; control != "" {
		return radiolink.Busy(control)
	}
	if sent != nil && (len(x.sheet.Listeners(radio.RoleRelay)) > 0 || provenance.Forwards()) {
		return silence.Forwarding(x.sheet, sent, x.controlBytes)
	}
	return nil
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
	a := x.run.a
	if recorded {
		if a.session == nil || !a.cfg.faultsPossible() {
			return nil
		}
		return compareAfterReboot(ctx, x.journal, a.session.Offset)
	}
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
	if a.cfg.inLab() {
		if p.Lab, err = x.labProof(ctx); err != nil {
			return err
		}
	}
	if _, err := x.journal.Append(journal.TypeProvenance, p); err != nil {
		return err
	}
	return x.recordClock(ctx, "before")
}

// countTraffic counts the traffic of listeners' ports over real radios: emulated ones count
// themselves. Where that cannot be done a run goes on, and its attempts say so. The returned
// function ends it.
func (x *execution) countTraffic() (ports disturbance.Ports, end func()) {
	if cfg := &x.run.a.cfg; cfg.emulated() || cfg.Device == "" || slices.ContainsFunc(x.devices(), loopback) {
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

func (u uncounted) Attach() error                                  { return u.why }
func (u uncounted) Each(func(port int, b packettimes.Bytes)) error { return u.why }

// apart are the ends of what asks the radio for its readings, and is not on the air, and of
// the control traffic: where that shares the radio, it is counted for itself, and where it
// does not, the interface may lead to both.
func (x *execution) apart(ctx context.Context) (out []netip.AddrPort) {
	if a := x.run.a; a.session != nil {
		control, err := silence.Ends(ctx, a.cfg.Orchestrator)
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
	cfg := x.run.a.cfg
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
	x.run.a.noteWaiting(fault)
}

// Transfers implements [executor.Observer].
func (x *execution) Transfers(n int) {
	x.silence.Transfers(n)
	x.watcher.transfers(n)
}

// Closing implements [executor.Observer]. No trial will run any more: the control
// link may be used again.
func (x *execution) Closing(ctx context.Context) {
	x.run.a.noteWaiting("")
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
	if s := x.run.a.session; s != nil {
		o = s.Offset(ctx, when)
	}
	_, err := x.journal.Append(journal.TypeClockOffset, o)
	return err
}
