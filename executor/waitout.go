package executor

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
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
}

func (f *faults) reset() { *f = faults{} }

// wait is how long the plan waits for what is not in order.
func (n *node) wait() time.Duration { return cmp.Or(n.sheet.Limits.Wait, runsheet.DefaultWait) }

// waitOut is called after an attempt that a fault of the apparatus made invalid. It
// returns when the next attempt may start, or, with held, after the run was paused or
// ended, because the fault has lasted for as long as the plan waits.
func (w *walk) waitOut(ctx context.Context, trial int, fault string) (held bool, err error) {
	n, f := w.node, &w.faults
	now := n.clock.Now()
	if f.since.IsZero() {
		*f = faults{since: now, pause: backoff.Backoff{Min: repeatPause, Max: repeatPauseMax, Clock: n.clock}}
	}
	pause := f.pause.Next()
	if now.Add(pause).Sub(f.since) > n.wait() {
		f.reset()
		return true, w.hold(ctx, fmt.Sprintf("trial %d was repeated for %s (limits.wait) because of the apparatus: %s", trial, n.wait(), fault))
	}
	n.log.Warn("the trial is repeated because of a fault of the apparatus", "trial", trial, "fault", fault, "after", pause)
	// Nothing runs on the radio, so the node may speak with the orchestrator.
	resumed := n.observer.Paused(ctx)
	fired, release := n.clock.Timer(pause)
	select {
	case <-fired:
	case <-w.commands.more(): // one may be to skip the trial
	case <-ctx.Done():
	}
	release()
	resumed()
	w.attempts.dead.pause(n.clock.Now().Sub(now))
	return false, nil
}

// hold pauses the run as a person's command would. In virtual time nobody can let it
// go on, so it ends there.
func (w *walk) hold(ctx context.Context, reason string) error {
	if w.commands.commands == nil || w.node.virtual {
		return w.node.end(ctx, journal.RunEnded{End: journal.RunStopped, Reason: clip(reason)})
	}
	w.node.log.Error("the run pauses", "reason", reason)
	return w.progress.pause(clip(reason))
}
