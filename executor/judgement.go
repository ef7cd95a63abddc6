package executor

import (
	"context"
	"time"

	"linktrial/executor/runsheet"
)

// judgementWait is how long a run with rules of validity stays open after its last
// trial: the other nodes' journals come every two seconds, and where they show that
// the trial's attempt broke a rule, it is to be repeated.
const judgementWait = 6 * time.Second

// awaitJudgement waits for a command to repeat a trial, after the last one. It returns
// true where there may be another one, and at once false where none can come: with
// in-band control the journals are not together before the run's end.
func (w *walk) awaitJudgement(ctx context.Context) (again bool, err error) {
	n := w.node
	if n.sheet.Valid == nil || w.commands.commands == nil || n.sheet.Control == runsheet.ControlInBand || n.virtual {
		return false, nil
	}
	n.record.syncNow() // without the last records nothing is decided
	fired, stop := n.clock.Timer(judgementWait)
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
