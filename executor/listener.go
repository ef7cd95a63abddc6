package executor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"linktrial/executor/driver"
	"linktrial/executor/journal"
	"linktrial/executor/replay"
	"linktrial/executor/runsheet"
	"linktrial/internal/backoff"
	"linktrial/internal/radio"
	"linktrial/protocols/contract"
)

// Times of a listener, all in the node's time.
const (
	restartPause    = 100 * time.Millisecond // between two starts of one that keeps ending
	restartPauseMax = 5 * time.Second
	steadyAfter     = 10 * time.Second // a listener that ran so long is not in a crash loop
)

// maxStrays is how many transfers of no trial, and errors of no transfer, are
// recorded for one process: anybody can open such connections.
const maxStrays = 100

// keepListeners keeps up what this node listens with until ctx ends. Wait waits for
// that end; known waits until each listener is ready, or the journal has why not.
func keepListeners(ctx context.Context, n *node, state *replay.State) (wait, known func()) {
	transfers := newTransferTable(n.runID, n.sheet, n.observer)
	var running, starting sync.WaitGroup
	for _, x := range n.sheet.Listeners(n.role) {
		starting.Add(1)
		l := &listener{node: n, transfers: transfers, Listener: x, port: x.Port(), started: sync.OnceFunc(starting.Done)}
		l.restarts = state.Restarts[l.name()]
		running.Go(func() {
			defer l.started()
			l.keep(ctx)
		})
	}
	return running.Wait, starting.Wait
}

// listener keeps one process up that listens: a treatment's server, or a relay
// process that it passes.
type listener struct {
	runsheet.Listener
	node      *node
	transfers *transferTable
	port      int // the sheet's, or a spare one where that is taken
	restarts  int
	started   func()   // called when the journal has its state for the first time
	failure   string   // the last one that was recorded, so that a repeated one is recorded once
	why       string   // of that failure
	lost      []string // transfers that its process was carrying when it crashed the last time
}

// keep returns when ctx ends and the process has exited, or when this node
// cannot run the driver at all.
func (l *listener) keep(ctx context.Context) {
	retry := backoff.Backoff{Min: restartPause, Max: restartPauseMax, Clock: l.node.clock}
	for ctx.Err() == nil {
		began := l.node.clock.Now()
		if again := l.run(ctx); !again {
			return
		}
		if l.node.clock.Now().Sub(began) >= steadyAfter {
			retry.Reset()
		}
		if !retry.Wait(ctx) {
			return
		}
	}
}

// run runs one process to its end; again reports whether another start makes sense.
func (l *listener) run(ctx context.Context) (again bool) {
	n := l.node
	protocol, p, err := l.parameters()
	if err != nil {
		l.recordFailure(contract.CodeUnsupported, err.Error(), notStarted)
		return false
	}
	if !l.awaitInterface(ctx) {
		return false
	}
	began := n.clock.Now()
	process, err := n.runner.Start(ctx, protocol, p, nil)
	if err != nil {
		if ctx.Err() != nil {
			return false
		}
		code, unsupported := contract.CodeListenFailed, errors.Is(err, ErrNoDriver)
		if unsupported {
			code = contract.CodeUnsupported
		}
		why := notStarted
		if unsupported || errors.Is(err, ErrBrokenDriver) {
			why = ofDriver
		}
		l.recordFailure(code, err.Error(), why)
		return !unsupported
	}
	s := &server{listener: l, process: process, began: began, stop: driver.NewStopper(process, n.clock), samples: map[string]*sampleBatch{}, active: map[string]bool{}, received: newReceived(n.sheet, l.transfers.place)}
	s.claimed, _ = s.unclaimed()
	s.watch(ctx)
	crash := process.Exit().crash(process.Log())
	if crash != "" {
		l.recordBreach(crashedBreach+crash, process.Log(), s.where())
	}
	if ctx.Err() != nil {
		return false
	}
	l.restarts++
	unsupported := s.explainEnd()
	why := ofDriver
	switch {
	case s.renewed:
		why = renewed
	case s.outside():
		why = endedOutside
	case crash != "":
		why, l.lost = crashed, slices.Sorted(maps.Keys(s.active))
	}
	taken := ""
	if s.code == contract.CodeListenFailed && !s.ready {
		why = notStarted
		if taken = l.portHolder(protocol); taken != "" {
			s.message = fmt.Sprintf("port %d is held by %s; %s", l.port, taken, s.message)
		}
	}
	// It was stopped before it was ready, or could not listen on an interface that is not
	// there, or at an address that it has lost.
	if o, _ := n.interfaceSince(began); !unsupported && !s.ready && !s.renewed && o.Text != "" {
		why = endedOutside
		s.message += "; " + o.Text
	}
	l.recordFailure(s.code, s.message, why)
	if taken != "" {
		l.takeSparePort()
	}
	return !unsupported && ctx.Err() == nil
}

// awaitInterface waits until the radio's interface is in order, or returns false when ctx
// ends. A process that listens may keep for ever what it finds when it starts: a listener
// of Haul which was started while the MTU was 576 slowed every transfer of after the
// fault, and they counted. See [server.checkInterface].
func (l *listener) awaitInterface(ctx context.Context) bool {
	n := l.node
	if n.iface == nil {
		return ctx.Err() == nil
	}
	for told := ""; ctx.Err() == nil; {
		fault, changed := n.interfaceNow()
		if fault == "" {
			return true
		}
		if fault != told {
			l.recordFailure(contract.CodeListenFailed, fault, waits)
			told = fault
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
	return false
}

// parameters are the listener's driver and what it is told.
func (l *listener) parameters() (protocol string, p *contract.Parameters, err error) {
	n, t, via := l.node, l.Treatment, l.Via
	if via == nil {
		p = n.parameters(t.Options, contract.RoleServer)
		p.Local = contract.Endpoint{Address: n.ownAddress(), Port: l.port}
		p.DSCP = t.DSCP
		if t.Passed(radio.RoleServer) {
			p.Device = "" // who connects is the relay process on this node
		} else if err := n.radios(p, t); err != nil {
			return "", nil, err
		}
		if t.Probe {
			p.Limits.TransferMS = ceilMS(longestProbe(n.sheet, t.Name))
		}
		return t.Protocol, p, nil
	}
	p = n.parameters(via.Options, contract.RoleRelay)
	p.DSCP = t.DSCP
	p.Local = contract.Endpoint{Address: n.ownAddress(), Port: l.port}
	p.Remote = contract.Endpoint{Address: n.addressOf(l.Next.At), Port: l.Next.Port}
	if via.At != radio.RoleRelay {
		p.Device = "" // one of its sides is on this node
	}
	if t.CompleteKnowledge && n.sheet.Network != nil {
		p.Link = linkKnowledge(n.sheet.Network, via.At, l.Next.At)
	}
	return via.Protocol, p, nil
}

// payload takes what a process hands over; nil: a relay process or a probe hands nothing over.
func (l *listener) payload(s *server) driver.Payload {
	if l.Via != nil || l.Treatment.Probe {
		return nil
	}
	return s.received
}

// recorded is what every journal record of the listener has, whatever its state.
func (l *listener) recorded() journal.Listener {
	return journal.Listener{Treatment: l.Treatment.Name, At: l.At(), Port: l.port, Restarts: l.restarts}
}

// recordStop records that something outside has stopped the process, which may go on.
func (l *listener) recordStop() {
	const message = "something other than Linktrial stopped its process"
	l.node.listeners.outage(l.name(), Outage{Text: "was stopped from outside", Stopped: true}, message, l.node.clock.Now())
	l.node.log.Warn("listener is stopped", "treatment", l.Treatment.Name, "at", string(l.At()))
	r := l.recorded()
	r.Code, r.Message, r.Outside, r.Stopped = contract.CodeInternal, message, true, true
	l.node.record.append(journal.TypeListenerFailed, r)
	l.node.record.syncNow()
}

// Why a listener is not up, in a sentence about it.
const (
	ofDriver     = "" // through a fault of its driver
	endedOutside = "was ended from outside"
	renewed      = "was ended to be started again" // what it knows of the interface may not be true any more
	waits        = "is started when all is in order"
	notStarted   = "could not be started"
	crashed      = "crashed" // through a fault of its driver, as well
)

// crashedBreach begins the message of the record that has the log of a listener which
// crashed, also of one that had been told to stop.
const crashedBreach = "the listener's process crashed: "

// recordFailure records that the listener is not up, and why. In a crash loop the same
// failure is recorded once.
func (l *listener) recordFailure(code contract.Code, message, why string) {
	message = clip(message)
	outside := why != ofDriver && why != crashed
	if outside {
		l.node.listeners.outage(l.name(), Outage{Text: why + ": " + message}, message, l.node.clock.Now())
	} else {
		l.node.listeners.failed(l.name(), code, message, why == crashed)
	}
	l.node.log.Warn("listener is not up", "treatment", l.Treatment.Name, "at", string(l.At()), "code", string(code), "reason", message)
	// One that was ended from outside again is another outage.
	if l.failure == message && l.why == why && why != endedOutside && why != renewed {
		return
	}
	l.failure, l.why = message, why
	r := l.recorded()
	r.Code, r.Message, r.Outside, r.Renewed = code, message, outside, why == renewed || why == waits
	if why == crashed {
		r.Crashed, r.Transfers = true, l.lost
	}
	l.node.record.append(journal.TypeListenerFailed, r)
	l.node.record.syncNow()
	l.started()
}

// portHolder names the program that holds the listener's port; empty: none is known.
func (l *listener) portHolder(protocol string) string {
	n := l.node
	if n.portHolder == nil {
		return ""
	}
	return n.portHolder(n.networkOfProtocol(protocol), l.port)
}

// takeSparePort has the next start open another port, where the leading node is the only
// one that connects there, and the node has one left.
func (l *listener) takeSparePort() {
	n := l.node
	if l.Via != nil || len(l.Treatment.Via) > 0 || n.spare.First == 0 {
		return
	}
	if port := n.spare.First + int(n.spareTaken.Add(1)) - 1; port <= n.spare.Last {
		l.port = port
	}
}

func (l *listener) name() journal.ListenerName { return nameOf(&l.Listener) }

// nameOf is a listener's name in journals.
func nameOf(l *runsheet.Listener) journal.ListenerName {
	return journal.ListenerName{Treatment: l.Treatment.Name, At: l.At()}
}

func (l *listener) recordReady(info *contract.Info) {
	l.failure = ""
	l.expectPackets()
	r := l.recorded()
	r.Info = info
	// Before anybody hears of it: an attempt that began before the record would count as
	// one that met a listener which was not in order.
	l.node.record.append(journal.TypeListenerReady, r)
	l.node.listeners.ready(l.name(), l.port, l.node.clock.Now())
	l.node.record.syncNow()
	l.started()
}

// recordBreach records a breach; at is where it happened, nil for no attempt.
func (l *listener) recordBreach(message, log string, at *place) {
	m := journal.Misbehaviour{Treatment: l.Treatment.Name, Message: clip(message), Log: tail(log, MaxLog)}
	if at != nil {
		m.Trial, m.Attempt = &at.trial, at.attempt
		if at.flow >= 0 {
			m.Flow = &at.flow
		}
	}
	l.node.record.append(journal.TypeDriverMisbehaved, m)
}

// server is one process of a listener from its start to its end.
type server struct {
	listener *listener
	process  Process
	began    time.Time // before its start
	stop     *driver.Stopper
	ready    bool
	code     contract.Code // of an error of the driver as a whole
	message  string        // why it ended
	strays   int           // transfers of no trial and errors of no transfer
	samples  map[string]*sampleBatch
	received *received
	active   map[string]bool // transfers of this process
	several  bool            // more than one of them ran at once, and one still does
	info     *contract.Info  // of ready
	stops    int             // of the process, that the journal has
	stopped  bool            // now, as the journal has it
	renewed  bool            // it is ended because of the radio's interface, and started again
	claimed  int64           // packets to a probe's listener that count for none that ends later
	idle     int64           // of all such packets, how many there were when no probe ran last
}

// checkInterface has the process end where the radio's interface has not been in order
// since its start: it is started again when it is. What a process keeps from its start
// need not be true of an interface that came back: a socket that is bound to one that
// went hears nothing ever after, though another has its name and address; Haul's packets
// fit the MTU of then. changed is closed when the interface is in another state.
func (s *server) checkInterface() (changed <-chan struct{}) {
	n := s.listener.node
	fault, changed := n.brokenSince(s.began)
	if fault == "" && s.ready && n.iface != nil {
		if why := n.iface.Deaf(s.listener.recorded().Port); why != "" {
			fault = "it hears nothing over the radio: " + why
		}
	}
	if fault == "" {
		return changed
	}
	if !s.renewed {
		s.renew(fault)
	}
	return nil
}

// renew has the process end and another one start, which is no fault of its driver.
func (s *server) renew(text string) {
	s.renewed, s.code, s.message = true, contract.CodeInternal, text
	if !s.stop.Asked {
		s.stop.Step()
	}
}

// halt records that something outside has stopped the process, or let it go on, unless
// it has ended; changed is closed when there is more to record. One that is not ready
// yet was not up before either.
func (s *server) halt(ended bool) (changed <-chan struct{}) {
	n, now, changed := s.process.Stops().State()
	if n > s.stops {
		s.stops, s.stopped = n, true
		if s.ready {
			s.listener.recordStop()
		}
	}
	if s.stopped && !now && s.ready && !ended {
		s.stopped = false
		s.listener.recordReady(s.info)
	}
	return changed
}

// watch returns when the process has exited and its output is read.
func (s *server) watch(ctx context.Context) {
	lines := driver.Lines(s.process.Output(), s.listener.node.clock, s.listener.payload(s))
	defer s.stop.Release()
	s.stop.After(contract.ReadyPatience)
	done, cancelled := s.process.Done(), ctx.Done()
	halted, broken := s.halt(false), s.checkInterface()
	for lines != nil || done != nil {
		select {
		case line, ok := <-lines:
			if !ok {
				lines = nil
				continue
			}
			s.takeLine(line)
		case <-broken:
			broken = s.checkInterface()
		case <-s.stop.Fired:
			if !s.ready && s.message == "" && ctx.Err() == nil {
				s.message = fmt.Sprintf("not ready within %s", contract.ReadyPatience)
			}
			s.stop.Step()
		case <-halted:
			halted = s.halt(false)
		case <-cancelled:
			cancelled = nil
			if !s.stop.Asked {
				s.stop.Step()
			}
		case <-done:
			done = nil
		}
	}
	s.halt(true)
	if left := s.process.Exit().leftMessage(); left != "" {
		s.listener.recordBreach(left, s.process.Log(), s.where())
	}
	// A process that has exited finishes none of its transfers.
	for _, b := range s.samples {
		b.flush()
	}
	for id := range s.active {
		s.listener.transfers.end(id)
	}
}

// where is the attempt of the process's transfers; nil: they are of none, or of
// several. The flow is -1 where there are several.
func (s *server) where() *place {
	var at *place
	for id := range s.active {
		p, ok := s.listener.transfers.place(id)
		switch {
		case !ok:
		case at == nil:
			at = &p
		case at.trial != p.trial || at.attempt != p.attempt:
			return nil
		default:
			at.flow = -1
		}
	}
	return at
}

func (s *server) takeLine(line driver.Line) {
	if line.Event == nil {
		s.message = line.Reason + ": " + line.Message
		s.listener.recordBreach(s.message, s.process.Log(), s.where())
		s.stop.Kill()
		return
	}
	s.handleEvent(line.Event, line.Size)
}

// explainEnd completes code and message when the process has exited by itself;
// unsupported: this node cannot run the driver at all.
func (s *server) explainEnd() (unsupported bool) {
	exit := s.process.Exit()
	unsupported = exit.Code == contract.ExitUnsupported || s.code == contract.CodeUnsupported
	switch {
	case unsupported:
		s.code = contract.CodeUnsupported
	case exit.Flooded:
		s.message = "standard error came faster than a log may"
	}
	if s.code == "" {
		s.code = contract.CodeInternal
	}
	if s.message == "" {
		s.message = "the listener ended by itself: " + exit.String()
	}
	if log := tail(s.process.Log(), 1024); log != "" {
		s.message += "; its log ends with: " + log
	}
	return unsupported
}

// outside reports whether something outside the driver ended a process that had said
// nothing of an end.
func (s *server) outside() bool {
	if s.stops > 0 && !s.ready {
		return true // it may have had no time to get ready
	}
	return !s.stop.Asked && s.code == contract.CodeInternal && s.process.Exit().outside()
}

// handleEvent applies an event whose line had size bytes.
func (s *server) handleEvent(e *contract.Event, size int) {
	switch e.Event {
	case contract.KindReady:
		if s.checkInterface(); s.ready || s.renewed {
			return
		}
		// A listener serves many attempts, and has read its program by now.
		if text := changed(s.process); text != "" {
			s.renew(text)
			return
		}
		s.ready, s.stopped, s.info = true, false, e.Info
		if s.checkInterface(); s.renewed { // its socket is there now
			return
		}
		s.listener.recordReady(e.Info)
		s.stop.Release()
	case contract.KindConnected:
		s.begin(e.Transfer)
	case contract.KindSample:
		s.begin(e.Transfer)
		if b := s.batch(e.Transfer); b != nil {
			if breach := b.add(*e.Sample, size); breach != "" {
				s.listener.recordBreach(breach, "", &place{b.head.Trial, b.head.Attempt, b.head.Flow})
			}
		}
	case contract.KindResult:
		s.end(journal.Received{Transfer: e.Transfer, Result: e.Result})
	case contract.KindError:
		switch {
		case e.Transfer != "":
			s.end(journal.Received{Transfer: e.Transfer, Code: e.Code, Message: clip(e.Message)})
		case !s.ready:
			s.code, s.message = e.Code, clip(e.Message)
		default:
			// A connection that ended before its header has no identity.
			s.stray(fmt.Sprintf("error of no transfer: %s: %s", e.Code, e.Message))
		}
	}
}

func (s *server) begin(id string) {
	s.active[id] = true
	s.several = s.several || len(s.active) > 1
	s.listener.transfers.begin(id)
}

// batch gathers the samples of a transfer; nil: the transfer is of another run,
// or of nobody, which is recorded when it ends.
func (s *server) batch(id string) *sampleBatch {
	b := s.samples[id]
	if b == nil {
		at, ok := s.listener.transfers.place(id)
		if !ok {
			return nil
		}
		n := s.listener.node
		b = &sampleBatch{record: n.record, clock: n.clock, head: journal.Samples{Trial: at.trial, Attempt: at.attempt, Flow: at.flow, Side: "server"}}
		s.samples[id] = b
	}
	return b
}

func (s *server) end(r journal.Received) {
	l := s.listener
	if b := s.samples[r.Transfer]; b != nil {
		b.flush()
		delete(s.samples, r.Transfer)
	}
	delete(s.active, r.Transfer)
	l.transfers.end(r.Transfer)
	s.received.end(&r)
	if _, ok := l.transfers.place(r.Transfer); !ok {
		s.stray("transfer " + r.Transfer + " belongs to no trial of this run")
		return
	}
	r.Treatment = l.Treatment.Name
	if took := s.packetsTook(); r.Result != nil {
		r.Packets = took
	}
	s.holdProbe(&r)
	l.node.record.append(journal.TypeReceived, r)
	// The leader may already count this transfer: were this agent to die now,
	// nobody else could confirm what arrived.
	l.node.record.syncNow()
}

// stray records what belongs to no attempt.
func (s *server) stray(message string) {
	if s.strays++; s.strays <= maxStrays {
		s.listener.recordBreach(message, "", nil)
	}
}
