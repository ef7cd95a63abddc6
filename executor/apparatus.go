package executor

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/backoff"
	"linktrial/internal/radio"
)

// listenerWait is how long an attempt waits for a listener that was started again;
// less than [peerLimit], so that another node's answer says which.
const listenerWait = 10 * time.Second

// lastWord is how long a node has to say that its listeners were in order.
const lastWord = 5 * time.Second

// errNoAnswer as the cause of a cancelled context: a node has not said in time whether
// all was in order.
var errNoAnswer = errors.New("no answer within " + lastWord.String())

// apparatusWatch watches, while an attempt's flows run, the nodes and listeners that
// they need. Without sources those of other nodes are not known: what happened there
// is decided where the journals of all nodes are together.
type apparatusWatch struct {
	sources  map[radio.Role]Source
	over     chan struct{} // closed when the flows have ended
	stop     context.CancelCauseFunc
	stopGone context.CancelFunc // of watching the radio, whose end [emulator.end] notices as well
	watching sync.WaitGroup

	end context.CancelCauseFunc // of the flows

	mu    sync.Mutex
	fault *downError // the first; nil: none
}

// watchApparatus watches until close, which must be called. The context is for the
// flows, and ends with the first fault as its cause.
func watchApparatus(ctx context.Context, n *node, trial *runsheet.Trial, sources map[radio.Role]Source) (*apparatusWatch, context.Context) {
	w := &apparatusWatch{sources: sources, over: make(chan struct{})}
	fctx, end := context.WithCancelCause(ctx)
	w.end = end
	wctx, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	w.stop = stop
	watch := func(reason string, outage outageFunc) {
		w.watching.Go(func() { w.found(reason, outage(wctx, w.over)) })
	}
	gctx, stopGone := context.WithCancel(wctx)
	w.stopGone = stopGone
	if r, ok := n.Radio.(RadioWatcher); ok {
		w.watching.Go(func() { w.found(journal.ReasonRadioDown, Outage{Text: r.Gone(gctx)}) })
	}
	if len(listenersAt(n.sheet, trial, n.Role)) > 0 {
		watch(journal.ReasonRelayDown, n.watchListeners(trial))
	}
	watch(journal.ReasonStopped, n.watchAgent(n.Clock.Now()))
	watch(journal.ReasonRadioDown, n.watchInterface(n.Clock.Now()))
	for role, s := range sources {
		watch(downReason(n.sheet, trial, role), func(ctx context.Context, _ <-chan struct{}) Outage {
			o, err := s.Outage(ctx)
			switch {
			case err != nil && ctx.Err() == nil:
				o.Text = "the agent of the " + string(role) + " ended during the attempt: " + err.Error()
			case o.Text == "" && errors.Is(context.Cause(ctx), errNoAnswer):
				o.Text = "the agent of the " + string(role) + " does not answer: " + errNoAnswer.Error()
			}
			return o
		})
	}
	return w, fctx
}

func (w *apparatusWatch) found(reason string, o Outage) {
	if o.Text == "" {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fault == nil {
		w.fault = &downError{reason, o.Text, o.Stopped}
		w.end(w.fault)
	}
}

// settle is called when the flows have ended: where one failed and something that it
// needed was not in order, it says nothing of the protocol, and none does where a
// process was stopped meanwhile.
func (w *apparatusWatch) settle(ctx context.Context, flows []*flow) {
	failed := func(f *flow) bool {
		r := &f.result
		return f.countsAsFailure() || r.Verdict == journal.Invalid && journal.FalseValue(r.Reason)
	}
	some := false
	for _, f := range flows {
		some = some || failed(f)
	}
	if some && ctx.Err() == nil {
		w.ask()
	}
	w.mu.Lock()
	fault := w.fault
	w.mu.Unlock()
	if fault == nil {
		return
	}
	for _, f := range flows {
		if fault.stopped || failed(f) {
			f.excuse(fault.reason, fault.text)
		}
	}
}

// ask has every node say whether all was in order.
func (w *apparatusWatch) ask() {
	close(w.over)
	w.stopGone()
	for _, s := range w.sources {
		s.Over()
	}
	stop := time.AfterFunc(lastWord, func() { w.stop(errNoAnswer) })
	w.watching.Wait()
	stop.Stop()
}

// close ends the watch.
func (w *apparatusWatch) close() {
	w.stop(nil)
	w.watching.Wait()
	w.end(nil)
}

// outageFunc returns a fault of a node as soon as it is known, or nothing when over is
// closed and all was in order, or ctx has ended.
type outageFunc func(ctx context.Context, over <-chan struct{}) Outage

// watch begins to watch what a trial needs of this node, see [Carrier].
func (n *node) watch(trial *runsheet.Trial) outageFunc {
	watches := []outageFunc{n.watchListeners(trial), n.watchAgent(n.Clock.Now()), n.watchInterface(n.Clock.Now())}
	return func(ctx context.Context, over <-chan struct{}) (first Outage) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		found := make(chan Outage, len(watches))
		for _, w := range watches {
			go func() { found <- w(ctx, over) }()
		}
		for range watches { // all are waited for
			if o := <-found; o.Text != "" && first.Text == "" {
				first = o
				cancel()
			}
		}
		return first
	}
}

// until watches with look, which returns what was not in order, and a channel that is
// closed when that may be something else. After over it looks once more, a while later
// where what happened may not be known at once.
func (n *node) until(later time.Duration, look func() (Outage, <-chan struct{})) outageFunc {
	return func(ctx context.Context, over <-chan struct{}) Outage {
		for {
			o, more := look()
			if o.Text != "" {
				return o
			}
			select {
			case <-more:
			case <-over:
				backoff.SleepOn(ctx, n.Clock, later)
				o, _ := look()
				return o
			case <-ctx.Done():
				return Outage{}
			}
		}
	}
}

// watchListeners begins to watch a trial's listeners on this node.
func (n *node) watchListeners(trial *runsheet.Trial) outageFunc {
	before := n.listenersNow(trial)
	return n.until(outageGrace, func() (Outage, <-chan struct{}) {
		changed := n.listeners.changed.Changed()
		return n.outageSince(before, trial), changed
	})
}

// watchAgent watches whether this node's agent has run since a moment.
func (n *node) watchAgent(since time.Time) outageFunc {
	return n.until(0, func() (Outage, <-chan struct{}) { return n.stallSince(since) })
}

// watchInterface watches whether the radio's interface on this node has been in order
// since a moment. A transfer that passed an interface with another MTU, or one that was
// down for some time, says nothing of the protocol, however it ended.
func (n *node) watchInterface(since time.Time) outageFunc {
	return n.until(0, func() (Outage, <-chan struct{}) { return n.interfaceSince(since) })
}

// awaitListeners waits until the listeners of a trial on this node are up, for
// listenerWait at most: where one is not, the attempt would say nothing of the protocol.
func (n *node) awaitListeners(ctx context.Context, trial *runsheet.Trial) error {
	ctx, cancel := context.WithTimeout(ctx, listenerWait)
	defer cancel()
	for _, name := range listenersAt(n.sheet, trial, n.Role) {
		if err := n.listeners.await(ctx, name, n.describe(name)); err != nil {
			return err
		}
	}
	return nil
}

func (n *node) describe(name journal.ListenerName) string { return describeListener(name, n.Role) }

// listenersNow is the state of the listeners of a trial on this node. An attempt during
// which the count of their outages changed says nothing of the protocol.
func (n *node) listenersNow(trial *runsheet.Trial) map[journal.ListenerName]listenerState {
	out := map[journal.ListenerName]listenerState{}
	for _, name := range listenersAt(n.sheet, trial, n.Role) {
		out[name] = n.listeners.get(name)
	}
	return out
}

// outageSince is what something outside has done to a listener of a trial on this node
// since the state before; nothing: Text is empty.
func (n *node) outageSince(before map[journal.ListenerName]listenerState, trial *runsheet.Trial) (o Outage) {
	for _, name := range listenersAt(n.sheet, trial, n.Role) {
		s, was := n.listeners.get(name), before[name]
		if s.outages > was.outages && o.Text == "" {
			o.Text = n.describe(name) + " " + s.outage
		}
		// It had been waited for, and was ended before the watch began.
		if was.outages > 0 && !was.up && !was.own && o.Text == "" {
			o.Text = n.describe(name) + " " + was.outage
		}
		o.Stopped = o.Stopped || s.stops > before[name].stops
	}
	return o
}

// nameCrashes gives flows that failed while a relay process of theirs on this node
// crashed this reason; before is the state of the node's listeners when they began. Of
// other nodes the orchestrator knows, where the journals are together.
func (n *node) nameCrashes(before map[journal.ListenerName]listenerState, flows []*flow) {
	for _, f := range flows {
		r := &f.result
		if !f.countsAsFailure() {
			continue
		}
		for name, was := range before {
			if s := n.listeners.get(name); name.Treatment == f.spec.Treatment && s.crashes > was.crashes {
				text := fmt.Sprintf("%s crashed: %s; the flow ended with %s: %s", n.describe(name), s.failure, r.Reason, r.Message)
				r.Verdict, r.Reason, r.Message = journal.Failed, journal.ReasonCrashed, clip(text)
				break
			}
		}
	}
}
