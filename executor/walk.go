package executor

import (
	"context"
	"errors"
	"sync"

	"linktrial/executor/journal"
	"linktrial/internal/backoff"
)

// walk goes through the sheet, one trial after the other.
type walk struct {
	*progress
	attempts *attempts
	waiter   *waiter
}

// run returns when no trial is left, the run is over, or ctx ended.
func (w *walk) run(ctx context.Context) error {
	defer w.attempts.prestart.drop()
	trials := len(w.node.sheet.Trials)
	first, rested := true, false
	for {
		if err := w.boundary(ctx); err != nil {
			return err
		}
		if err := w.look(); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return w.node.stopped(ctx)
		}
		i, ok := w.state.Next(trials)
		if !ok {
			if again, err := w.awaitJudgement(ctx); again || err != nil {
				if err != nil {
					return err
				}
				continue
			}
			return w.node.end(ctx, journal.RunEnded{End: journal.RunCompleted})
		}
		if !first && !rested && w.node.sheet.Limits.Pause > 0 {
			w.rest(ctx)
			rested = true
			continue // commands may have come meanwhile
		}
		if over, err := w.trial(ctx, i); over || err != nil {
			return err
		}
		first, rested = false, false
		if _, more := w.state.Next(trials); more || w.node.Commands != nil {
			w.node.Observer.Boundary(ctx)
		}
	}
}

// rest is the pause between two trials that the plan asks for.
func (w *walk) rest(ctx context.Context) {
	began := w.node.Clock.Now()
	backoff.SleepOn(ctx, w.node.Clock, w.node.sheet.Limits.Pause)
	w.attempts.dead.pause(w.node.Clock.Now().Sub(began))
}

// boundary applies people's commands, and returns when a trial may start or ctx
// has ended. An error means that the journal is unusable.
func (w *walk) boundary(ctx context.Context) error {
	more, err := w.applyAll()
	if err != nil || !w.state.Paused {
		return err
	}
	began := w.node.Clock.Now()
	resumed := w.node.Observer.Paused(ctx)
	for w.state.Paused && err == nil && ctx.Err() == nil {
		select {
		case <-more:
			more, err = w.applyAll()
		case <-ctx.Done():
		}
	}
	resumed(false)
	w.attempts.dead.pause(w.node.Clock.Now().Sub(began))
	return err
}

// trial executes one trial to its terminal record. True: the run is over, or
// was interrupted.
func (w *walk) trial(ctx context.Context, i int) (over bool, err error) {
	t := w.state.Trial(i)
	for {
		if err := w.applySkip(i); err != nil {
			return true, err
		}
		if t.Over(w.node.sheet.Limits.Attempts) {
			return false, w.endTrial(i)
		}
		if ctx.Err() != nil {
			return true, w.node.stopped(ctx)
		}
		if err := w.node.record.journal.CheckSpace(); err != nil {
			return true, w.outOfSpace(ctx, err)
		}
		ready, held, err := w.waiter.awaitInterface(ctx, i)
		if held || err != nil {
			return !w.state.Paused, err
		}
		if !ready {
			continue
		}
		if fault := w.attempts.paths.open(ctx, &w.node.sheet.Trials[i]); fault != "" {
			if held, err := w.waiter.waitOut(ctx, i, fault); held || err != nil {
				return !w.state.Paused, err
			}
			continue
		}
		if ctx.Err() != nil {
			return true, w.node.stopped(ctx)
		}
		t.Attempts++
		end, err := w.attemptUnlessSkipped(ctx, i, t.Attempts)
		if err != nil {
			return true, err
		}
		if end.Verdict == journal.Aborted && ctx.Err() != nil {
			return true, w.node.stopped(ctx)
		}
		t.EndAttempt(end)
		if end.Verdict != journal.Invalid || !journal.ApparatusFault(end.Reason) {
			w.waiter.goOn(i)
			continue
		}
		if held, err := w.waiter.waitOut(ctx, i, end.Message); held || err != nil {
			return !w.state.Paused, err
		}
	}
}

func (w *walk) outOfSpace(ctx context.Context, err error) error {
	// Who has commands goes on when there is room again; nobody makes any in virtual
	// time or for a run from a file.
	if !errors.Is(err, journal.ErrDiskFull) || w.node.Commands != nil && !w.node.virtual {
		return err
	}
	return w.node.end(ctx, journal.RunEnded{End: journal.RunStopped, Reason: err.Error()})
}

// attemptUnlessSkipped is [attempts.run], ended by a command to skip its trial.
func (w *walk) attemptUnlessSkipped(ctx context.Context, i, n int) (*journal.AttemptEnded, error) {
	trial, next := &w.node.sheet.Trials[i], w.following(i)
	if w.node.Commands == nil {
		return w.attempts.run(ctx, trial, n, next)
	}
	actx, cancel := context.WithCancelCause(ctx)
	over := make(chan struct{})
	var watching sync.WaitGroup
	var failed error
	watching.Go(func() { failed = w.watchForSkip(over, i, cancel) })
	end, err := w.attempts.run(actx, trial, n, next)
	close(over)
	watching.Wait()
	cancel(nil)
	return end, errors.Join(err, failed)
}

// following is the attempt after the current trial's last one; nil: none.
func (w *walk) following(current int) *attemptID {
	next, ok := w.state.After(current, len(w.node.sheet.Trials))
	if !ok {
		return nil
	}
	return &attemptID{next, w.state.Trial(next).Attempts + 1}
}
