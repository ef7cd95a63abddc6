package executor

import (
	"cmp"
	"context"
	"time"

	"linktrial/executor/runsheet"
)

// usualJudgementWait is how long a run with rules of validity, or over real radios, stays open
// after its last trial: the other nodes' journals come every two seconds, and where they
// show that the trial's attempt broke a rule, or that something there was not in order
// which this node did not learn, it is to be repeated.
const usualJudgementWait = 10 * time.Second

// inBandDelivery is how long a node that does not lead may take, once it may call, to
// deliver what it recorded, and the orchestrator to decide about it.
const inBandDelivery = 12 * time.Second

// awaitJudgement waits for a command to repeat a trial, after the last one. It returns
// true where there may be another one, and at once false where none can come. With
// in-band control it opens the way to the orchestrator meanwhile: what the other nodes
// counted and met becomes known when they have been idle.
func (w *walk) awaitJudgement(ctx context.Context) (again bool, err error) {
	n := w.node
	inBand := n.sheet.Control == runsheet.ControlInBand
	told := n.paths.paths == nil // of the other nodes' faults, when they happen
	if w.commands.commands == nil || n.virtual || n.sheet.Valid == nil && !inBand && told {
		return false, nil
	}
	n.record.syncNow() // without the last records nothing is decided
	wait := usualJudgementWait
	if inBand {
		wait = n.sheet.IdleBeforeControl() + inBandDelivery
	}
	wait = cmp.Or(w.judgementWait, wait)
	if inBand {
		n.log.Info("last trial has ended; the other nodes' counts of control traffic are awaited", "at_most", wait)
		resumed := n.observer.Paused(ctx)
		defer func() { resumed(!again) }()
	}
	fired, stop := n.clock.Timer(wait)
	defer stop()
	for {
		more, err := w.commands.applyAll()
		if err != nil {
			return false, err
		}
		if _, open := w.state.Next(len(n.sheet.Trials)); open || w.state.Paused {
			return true, nil
		}
		select {
		case <-more:
		case <-fired:
			return false, nil
		case <-ctx.Done():
			return true, nil
		}
	}
}
