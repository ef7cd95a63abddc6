package executor

import (
	"context"
	"fmt"
	"time"

	"linktrial/executor/journal"
	"linktrial/internal/backoff"
)

// Pauses before a trial is repeated because of a fault of the apparatus.
const (
	repeatPause    = 500 * time.Millisecond
	repeatPauseMax = 30 * time.Second
)

// faults is the faults of the apparatus that a trial has met in a row.
type faults struct {
	since time.Time // when the first was seen; zero: there is none
	pause backoff.Backoff
	told  string // why the run waits, as the journal has it; empty: it does not
}

// waiter has a trial wait while the apparatus is not in order.
type waiter struct {
	*progress
	dead   *deadTime // without these waits
	faults faults
}

// goOn ends the waiting, where there was any.
func (w *waiter) goOn(trial int) {
	if w.faults.told != "" {
		w.tell(trial, "")
	}
	w.faults = faults{}
}

// tell records why the run waits, and tells the observer; with nothing, that it goes on.
func (w *waiter) tell(trial int, fault string) {
	if w.faults.told == fault {
		return
	}
	w.faults.told = fault
	w.node.record.append(journal.TypeWaiting, journal.Waiting{Trial: trial, Fault: clip(fault)})
	w.node.record.syncNow() // in the next window it can be delivered
	w.node.Observer.Waiting(fault)
}

// begin is called when a trial has met a fault; first: none before it.
func (f *faults) begin(clock Clock) (first bool) {
	if !f.since.IsZero() {
		return false
	}
	*f = faults{since: clock.Now(), pause: backoff.Backoff{Min: repeatPause, Max: repeatPauseMax, Clock: clock}}
	return true
}

// waitOut is called after an attempt that a fault of the apparatus made invalid, or
// before one that could not begin for it. It returns when the next attempt may start, or,
// with held, after the run was paused or ended, because the fault has lasted for as long
// as the plan waits.
func (w *waiter) waitOut(ctx context.Context, trial int, fault string) (held bool, err error) {
	n, f := w.node, &w.faults
	now := n.Clock.Now()
	f.begin(n.Clock)
	pause := f.pause.Next()
	if now.Add(pause).Sub(f.since) > n.wait() {
		w.goOn(trial)
		return true, w.hold(ctx, fmt.Sprintf("trial %d has waited for %s (limits.wait) because of the apparatus: %s", trial, n.wait(), fault))
	}
	w.tell(trial, fault)
	n.log.Warn("the trial waits because of a fault of the apparatus", "trial", trial, "fault", fault, "after", pause)
	w.sleep(ctx, now, pause, nil)
	return false, nil
}

// awaitInterface is called before an attempt. Where the interfaces of the node's radios are
// in order it returns at once, and ready. Else it returns when that may have changed, or
// a person has given a command, or, with held, after the run was paused or ended because
// it has lasted for as long as the plan waits: an attempt would only be repeated.
func (w *waiter) awaitInterface(ctx context.Context, trial int) (ready, held bool, err error) {
	n, f := w.node, &w.faults
	if n.Interface == nil {
		return true, false, nil
	}
	fault, changed := n.interfaceNow()
	if fault == "" {
		return true, false, nil
	}
	now := n.Clock.Now()
	if f.begin(n.Clock) {
		n.log.Warn("the trial waits for the radio's interface", "trial", trial, "fault", fault)
	}
	left := n.wait() - now.Sub(f.since)
	w.tell(trial, fault)
	if left <= 0 {
		w.goOn(trial)
		return false, true, w.hold(ctx, fmt.Sprintf("trial %d has waited for %s (limits.wait) for the apparatus: %s", trial, n.wait(), fault))
	}
	w.sleep(ctx, now, left, changed)
	return false, false, nil
}

// sleep ends after a time, when changed is closed or with a person's command, and leaves
// the time since began out of the dead time.
func (w *waiter) sleep(ctx context.Context, began time.Time, d time.Duration, changed <-chan struct{}) {
	n := w.node
	// Nothing runs on the radio, so the node may speak with the orchestrator.
	resumed := n.Observer.Paused(ctx)
	fired, release := n.Clock.Timer(d)
	select {
	case <-changed:
	case <-fired:
	case <-w.more(): // one may be to skip the trial
	case <-ctx.Done():
	}
	release()
	resumed(false)
	w.dead.pause(n.Clock.Now().Sub(began))
}

// hold pauses the run as a person's command would. In virtual time nobody can let it
// go on, so it ends there.
func (w *waiter) hold(ctx context.Context, reason string) error {
	if w.node.Commands == nil || w.node.virtual {
		return w.node.end(ctx, journal.RunEnded{End: journal.RunStopped, Reason: clip(reason)})
	}
	w.node.log.Error("the run pauses", "reason", reason)
	return w.pause(clip(reason))
}
