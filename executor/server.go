package executor

import (
	"context"
	"fmt"
	"time"

	"linktrial/executor/driver"
	"linktrial/executor/journal"
	"linktrial/protocols/contract"
)

// maxStrays is how many transfers of no trial, and errors of no transfer, are
// recorded for one process: anybody can open such connections.
const maxStrays = 100

// server is one process of a listener from its start to its end.
type server struct {
	arrivedPackets
	process  Process
	began    time.Time // before its start
	stop     *driver.Stopper
	ready    bool
	code     contract.Code // of an error of the driver as a whole
	message  string        // why it ended
	strays   int           // transfers of no trial and errors of no transfer
	samples  map[string]*sampleBatch
	received *received
	info     *contract.Info // of ready
	stops    int            // of the process, that the journal has
	stopped  bool           // now, as the journal has it
	renewed  bool           // it is ended because of the radio's interface, and started again
}

// payload takes what a process hands over; nil: a relay process or a probe hands nothing over.
func (s *server) payload() driver.Payload {
	if l := s.listener; l.Via != nil || l.Treatment.Probe {
		return nil
	}
	return s.received
}

// checkInterface has the process end where the radio's interface has not been in order
// since its start: it is started again when it is. What a process keeps from its start
// need not be true of an interface that came back: a socket that is bound to one that
// went hears nothing ever after, though another has its name and address; Haul's packets
// fit the MTU of then. changed is closed when the interface is in another state.
func (s *server) checkInterface() (changed <-chan struct{}) {
	n := s.listener.node
	fault, changed := n.brokenSince(s.began)
	if fault == "" && s.ready && n.Interface != nil {
		if why := n.Interface.Deaf(s.listener.recorded().Port); why != "" {
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
		s.recordReady()
	}
	return changed
}

func (s *server) recordReady() {
	s.expectPackets()
	s.listener.recordReady(s.info)
}

// watch returns when the process has exited and its output is read.
func (s *server) watch(ctx context.Context) {
	lines := driver.Lines(s.process.Output(), s.listener.node.Clock, s.payload())
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
		s.recordReady()
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
		b = &sampleBatch{record: n.record, clock: n.Clock, head: journal.Samples{Trial: at.trial, Attempt: at.attempt, Flow: at.flow, Side: "server"}}
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
