package executor

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"linktrial/executor/journal"
	"linktrial/internal/notify"
	"linktrial/internal/radio"
	"linktrial/protocols/contract"
)

// outageGrace is how long a node waits before it says which of its listeners were not
// in order: a client may know of a killed listener before that one's own node does.
const outageGrace = 250 * time.Millisecond

// listenerTable knows which of this node's listeners are in order.
type listenerTable struct {
	mu      sync.Mutex
	state   map[journal.ListenerName]listenerState
	changed notify.Notifier
}

// listenerState is up, or why it is not: it has not been started yet, something
// outside ended it, or its driver has a fault.
type listenerState struct {
	up       bool
	own      bool // a fault of the driver
	crashed  bool // the fault is a crash
	crashes  int  // how often the driver crashed
	gone     bool // for good: this node cannot run the driver
	code     contract.Code
	failure  string    // why it was last not up
	port     int       // of the last one that was ready; 0: there was none
	since    time.Time // when it became ready last
	outageAt time.Time // when the last outage was noticed
	outages  int       // how often something outside ended or stopped it
	stops    int       // of them, how often it was stopped
	outage   string    // what was done to it the last time
}

func newListenerTable() *listenerTable {
	return &listenerTable{state: map[journal.ListenerName]listenerState{}}
}

func (t *listenerTable) ready(name journal.ListenerName, port int, at time.Time) {
	t.set(name, func(s *listenerState) { s.up, s.own, s.port, s.since = true, false, port, at })
}

// failed is a failure of the driver's own.
func (t *listenerTable) failed(name journal.ListenerName, code contract.Code, failure string, crashed bool) {
	t.set(name, func(s *listenerState) {
		s.up, s.own, s.gone, s.code, s.failure, s.crashed = false, true, code == contract.CodeUnsupported, code, failure, crashed
		if crashed {
			s.crashes++
		}
	})
}

// outage is a failure through no fault of the driver; o says what was done to it.
func (t *listenerTable) outage(name journal.ListenerName, o Outage, failure string, at time.Time) {
	t.set(name, func(s *listenerState) {
		s.up, s.own, s.gone, s.code, s.failure, s.outage = false, false, false, "", failure, o.Text
		s.outages++
		s.outageAt = at
		if o.Stopped {
			s.stops++
		}
	})
}

func (t *listenerTable) set(name journal.ListenerName, change func(*listenerState)) {
	t.mu.Lock()
	s := t.state[name]
	change(&s)
	t.state[name] = s
	t.mu.Unlock()
	t.changed.Notify()
}

func (t *listenerTable) get(name journal.ListenerName) listenerState {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.state[name]
}

// ListenerError reports a listener that does not stay up through a fault of its
// driver, or which the node cannot run. That is the protocol's, unlike all else that
// keeps a listener from being up; but not where its driver refused its parameters.
type ListenerError struct {
	Reason  string // of the attempt's verdict
	Message string
}

func (e *ListenerError) Error() string { return e.Message }

// verdict is that of an attempt which needs the listener.
func (e *ListenerError) verdict() journal.Verdict { return codeVerdict(contract.Code(e.Reason)) }

// codeVerdict is the verdict of an attempt that a driver ended with a code. Parameters
// that a driver refuses say nothing of its protocol: no packet was sent.
func codeVerdict(code contract.Code) journal.Verdict {
	switch code {
	case contract.CodeConnectTimeout, contract.CodeTransferTimeout:
		return journal.TimedOut
	case contract.CodeBadParameters:
		return journal.Invalid
	}
	return journal.Failed
}

// ownError is the error of a listener that is not up through a fault of its driver.
func (s *listenerState) ownError(what string) *ListenerError {
	switch {
	case s.gone:
		return &ListenerError{string(contract.CodeUnsupported), what + " cannot run: " + s.failure}
	case s.code == contract.CodeBadParameters:
		return &ListenerError{string(s.code), what + " refuses its parameters: " + s.failure}
	case s.crashed:
		return &ListenerError{journal.ReasonCrashed, what + " is not up, because its driver crashed: " + s.failure}
	}
	return &ListenerError{journal.ReasonListener, what + " is not up: " + s.failure}
}

// await waits until a listener is up: until ctx ends, or not at all where it never
// will be.
func (t *listenerTable) await(ctx context.Context, name journal.ListenerName, what string) error {
	for {
		changed := t.changed.Changed()
		s := t.get(name)
		if s.up {
			return nil
		}
		if !s.gone {
			select {
			case <-changed:
				continue
			case <-ctx.Done():
			}
		}
		switch {
		case s.gone || s.own:
			return s.ownError(what)
		case s.failure == "":
			s.failure = "it is not ready yet"
		}
		return fmt.Errorf("%s is not up: %s", what, s.failure)
	}
}

// farPorts is the ports of other nodes' listeners, where they are not the sheet's.
type farPorts struct {
	mu    sync.Mutex
	moved map[radio.Role]map[journal.ListenerName]int
}

// at is the port of a listener on a role, which has the port sheet in the sheet.
func (p *farPorts) at(role radio.Role, name journal.ListenerName, sheet int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return cmp.Or(p.moved[role][name], sheet)
}

// learn keeps at which ports a node's listeners are, as it has answered: those that it
// does not name are at the sheet's, also where they were at another one before its agent
// was started again. One that is not up is where it was.
func (p *farPorts) learn(role radio.Role, told []ListenerReport) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := map[journal.ListenerName]int{}
	for _, l := range told {
		if l.Up {
			now[l.name()] = l.Port
		} else if port, known := p.moved[role][l.name()]; known {
			now[l.name()] = port
		}
	}
	p.moved[role] = now
}
