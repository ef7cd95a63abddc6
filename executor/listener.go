package executor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/backoff"
	"linktrial/protocols/contract"
)

// Pauses between two starts of a listener that keeps ending.
const (
	restartPause    = 100 * time.Millisecond
	restartPauseMax = 5 * time.Second
	steadyAfter     = 10 * time.Second // a listener that stood so long is not in a crash loop
)

// listener keeps one treatment's server process up.
type listener struct {
	*server
	treatment *runsheet.Treatment
	restarts  int
	failed    string // the last failure that was journaled, to note a repeated one only once
}

// keep returns when ctx ends and the process has gone, or when this node
// cannot run the driver at all.
func (l *listener) keep(ctx context.Context) {
	retry := backoff.Backoff{Min: restartPause, Max: restartPauseMax, Clock: l.Clock}
	for ctx.Err() == nil {
		began := l.Clock.Now()
		again := l.once(ctx)
		if !again {
			return
		}
		if l.Clock.Now().Sub(began) >= steadyAfter {
			retry.Reset()
		}
		if !retry.Wait(ctx) {
			return
		}
	}
}

// once runs one process to its end; again says whether another start makes sense.
func (l *listener) once(ctx context.Context) (again bool) {
	q := l.parameters(l.treatment, contract.RoleServer)
	q.Local = contract.Endpoint{Address: l.ownAddress(), Port: l.treatment.Port}
	proc, err := l.Runner.Start(ctx, l.treatment.Protocol, q)
	if err != nil {
		if ctx.Err() != nil {
			return false
		}
		code, unsupported := contract.CodeListenFailed, errors.Is(err, ErrNoDriver)
		if unsupported {
			code = contract.CodeUnsupported
		}
		l.fail(code, err.Error())
		return !unsupported
	}
	w := &watched{listener: l, proc: proc, samples: map[string]*batch{}, running: map[string]bool{}}
	w.watch(ctx)
	return !w.unsupported && ctx.Err() == nil
}

// fail journals that the listener does not stand. In a crash loop the same
// failure is noted once.
func (l *listener) fail(code contract.Code, message string) {
	message = clip(message)
	l.Logger.Warn("listener does not stand", "treatment", l.treatment.Name, "code", string(code), "reason", message)
	if l.failed == message {
		return
	}
	l.failed = message
	l.append(journal.TypeListenerFailed, journal.Listener{Treatment: l.treatment.Name, Port: l.treatment.Port, Code: code, Message: message, Restarts: l.restarts})
	l.durable()
}

func (l *listener) durable() {
	if err := l.sync(); err != nil {
		l.Logger.Error("journal could not be synced", "error", err)
	}
}

func (l *listener) misbehaved(message, log string) {
	l.append(journal.TypeDriverMisbehaved, journal.Misbehaviour{Treatment: l.treatment.Name, Message: clip(message), Log: tail(log, MaxLog)})
}

// watched is one listener process from its start to its end.
type watched struct {
	*listener
	proc        Process
	ready       bool
	unsupported bool
	code        contract.Code // of an error of the driver as a whole
	message     string
	strays      int // errors that name no transfer
	samples     map[string]*batch
	running     map[string]bool
}

func (w *watched) runs(id string) {
	w.running[id] = true
	w.activity(id, true)
}

func (w *watched) watch(ctx context.Context) {
	events := listen(w.proc.Output(), w.Clock)
	end := &ender{proc: w.proc, clock: w.Clock}
	defer end.release()
	end.in(listenLimit)
	done, cancelled := w.proc.Done(), ctx.Done()
	for events != nil || done != nil {
		select {
		case h, ok := <-events:
			switch {
			case !ok:
				events = nil
			case h.event == nil:
				w.misbehaved(h.reason+": "+h.message, w.proc.Log())
				w.message = h.reason + ": " + h.message
				end.kill()
			default:
				if w.take(h) {
					end.release()
				}
			}
		case <-end.fired:
			if !w.ready && w.message == "" && ctx.Err() == nil {
				w.message = fmt.Sprintf("not ready within %s", listenLimit)
			}
			end.step()
		case <-cancelled:
			cancelled = nil
			if !end.asked {
				end.step()
			}
		case <-done:
			done = nil
		}
	}
	// A listener that has gone finishes none of its transfers.
	for _, b := range w.samples {
		b.flush(w.part)
	}
	for id := range w.running {
		w.activity(id, false)
	}
	if ctx.Err() != nil {
		return
	}
	w.restarts++
	exit := w.proc.Exit()
	w.unsupported = exit.Code == contract.ExitUnsupported || w.code == contract.CodeUnsupported
	switch {
	case w.unsupported:
		w.code = contract.CodeUnsupported
	case exit.Flooded:
		w.message = "standard error came faster than a log may"
	}
	if w.code == "" {
		w.code = contract.CodeInternal
	}
	if w.message == "" {
		w.message = "the listener ended by itself: " + exit.String()
	}
	if log := tail(w.proc.Log(), 1024); log != "" {
		w.message += "; its log ends with: " + log
	}
	w.fail(w.code, w.message)
}

// take notes an event; true when the listener now stands.
func (w *watched) take(h driverLine) (ready bool) {
	e := h.event
	switch e.Event {
	case contract.KindReady:
		if w.ready {
			return false
		}
		w.ready, w.failed = true, ""
		w.append(journal.TypeListenerReady, journal.Listener{Treatment: w.treatment.Name, Port: w.treatment.Port, Info: e.Info, Restarts: w.restarts})
		w.durable()
		return true
	case contract.KindConnected:
		w.runs(e.Transfer)
	case contract.KindSample:
		w.runs(e.Transfer)
		b := w.samples[e.Transfer]
		if b == nil {
			at, ok := w.place(e.Transfer)
			if !ok {
				return false // of another run, or of nobody: its result will say so
			}
			b = &batch{head: journal.Samples{Trial: at.trial, Attempt: at.attempt, Flow: at.flow, Side: "server"}}
			w.samples[e.Transfer] = b
		}
		b.add(w.part, *e.Sample, h.size)
	case contract.KindResult:
		w.received(journal.Received{Transfer: e.Transfer, Result: e.Result})
	case contract.KindError:
		if e.Transfer != "" {
			w.received(journal.Received{Transfer: e.Transfer, Code: e.Code, Message: clip(e.Message)})
			return false
		}
		if !w.ready {
			w.code, w.message = e.Code, clip(e.Message)
			return false
		}
		// A connection that ended before its header has no identity. Anybody
		// can open such ones, so only the first few of a process are noted.
		if w.strays++; w.strays <= 100 {
			w.misbehaved(fmt.Sprintf("error of no transfer: %s: %s", e.Code, e.Message), "")
		}
	}
	return false
}

func (w *watched) received(r journal.Received) {
	if b := w.samples[r.Transfer]; b != nil {
		b.flush(w.part)
		delete(w.samples, r.Transfer)
	}
	delete(w.running, r.Transfer)
	w.activity(r.Transfer, false)
	if _, ok := w.place(r.Transfer); !ok {
		if w.strays++; w.strays <= 100 {
			w.misbehaved("transfer "+r.Transfer+" belongs to no trial of this run", "")
		}
		return
	}
	r.Treatment = w.treatment.Name
	w.append(journal.TypeReceived, r)
	// The leader may already count this transfer: were this agent to die now,
	// nobody else could confirm what arrived.
	w.durable()
}
