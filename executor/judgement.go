package executor

import (
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

// judgementWait is how long the run stays open after its last trial; 0 where no command to
// repeat it can come.
func (n *node) judgementWait() time.Duration {
	inBand := n.sheet.Control == runsheet.ControlInBand
	told := n.Paths == nil // of the other nodes' faults, when they happen
	switch {
	case n.Commands == nil || n.virtual || n.sheet.Valid == nil && !inBand && told:
		return 0
	case n.JudgementWait != 0:
		return n.JudgementWait
	case inBand:
		return n.sheet.IdleBeforeControl() + inBandDelivery
	}
	return usualJudgementWait
}

// awaitJudgement waits for a command to repeat a trial, after the last one. It returns
// true where there may be another one. With in-band control it opens the way to the
// orchestrator meanwhile: what the other nodes counted and met becomes known when they
// have been idle.
func (p *progress) awaitJudgement(ctx context.Context) (again bool, err error) {
	n := p.node
	wait := n.judgementWait()
	if wait == 0 {
		return false, nil
	}
	n.record.syncNow() // without the last records nothing is decided
	if n.sheet.Control == runsheet.ControlInBand {
		n.log.Info("last trial has ended; the other nodes' counts of control traffic are awaited", "at_most", wait)
		resumed := n.Observer.Paused(ctx)
		defer func() { resumed(!again) }()
	}
	fired, stop := n.Clock.Timer(wait)
	defer stop()
	for {
		more, err := p.applyAll()
		if err != nil {
			return false, err
		}
		if _, open := p.state.Next(len(n.sheet.Trials)); open || p.state.Paused {
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
