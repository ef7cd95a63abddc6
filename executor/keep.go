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
	"linktrial/executor/replay"
	"linktrial/internal/backoff"
	"linktrial/protocols/contract"
)

// Times of a listener, all in the node's time.
const (
	restartPause    = 100 * time.Millisecond // between two starts of one that keeps ending
	restartPauseMax = 5 * time.Second
	steadyAfter     = 10 * time.Second // a listener that ran so long is not in a crash loop
)

// keepListeners keeps up what this node listens with until ctx ends. Wait waits for
// that end; known waits until each listener is ready, or the journal has why not.
func keepListeners(ctx context.Context, n *node, state *replay.State) (wait, known func()) {
	transfers := newTransferTable(n.RunID, n.sheet, n.Observer)
	var running, starting sync.WaitGroup
	for _, x := range n.sheet.Listeners(n.Role) {
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

// keep returns when ctx ends and the process has exited, or when this node
// cannot run the driver at all.
func (l *listener) keep(ctx context.Context) {
	retry := backoff.Backoff{Min: restartPause, Max: restartPauseMax, Clock: l.node.Clock}
	for ctx.Err() == nil {
		began := l.node.Clock.Now()
		if again := l.run(ctx); !again {
			return
		}
		if l.node.Clock.Now().Sub(began) >= steadyAfter {
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
	began := n.Clock.Now()
	process, err := n.Runner.Start(ctx, protocol, p, nil)
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
	s := &server{arrivedPackets: arrivedPackets{listener: l, active: map[string]bool{}}, process: process, began: began, stop: driver.NewStopper(process, n.Clock), samples: map[string]*sampleBatch{}, received: newReceived(n.sheet, l.transfers.place)}
	s.claimed, _ = s.unclaimed()
	s.watch(ctx)
	crash := process.Exit().crash(process.Log())
	if crash != "" {
		l.recordBreach(crashedBreach+crash, process.Log(), s.where())
	}
	return ctx.Err() == nil && l.recordEnd(s, protocol, crash)
}

// recordEnd records why a process has ended that nobody here stopped; crash says how it
// crashed, where it did. again reports whether another start makes sense.
func (l *listener) recordEnd(s *server, protocol, crash string) (again bool) {
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
	if o, _ := l.node.interfaceSince(s.began); !unsupported && !s.ready && !s.renewed && o.Text != "" {
		why = endedOutside
		s.message += "; " + o.Text
	}
	l.recordFailure(s.code, s.message, why)
	if taken != "" {
		l.takeSparePort()
	}
	return !unsupported
}

// awaitInterface waits until the radio's interface is in order, or returns false when ctx
// ends. A process that listens may keep for ever what it finds when it starts: a listener
// of Haul which was started while the MTU was 576 slowed every transfer of after the
// fault, and they counted. See [server.checkInterface].
func (l *listener) awaitInterface(ctx context.Context) bool {
	n := l.node
	if n.Interface == nil {
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
