package executor

import (
	"encoding/json"
	"fmt"

	"linktrial/executor/journal"
)

// Reasons of the executor's own, beside the contract's codes. Closed list.
const (
	ReasonExited      = "exited"           // ended without a result or an error
	ReasonGarbage     = "garbage"          // wrote what is no event, or events out of order
	ReasonFlood       = "flood"            // wrote more than a driver may
	ReasonWrongResult = "wrong-result"     // a result of another transfer or size
	ReasonNoStart     = "no-start"         // the process could not be started
	ReasonInterrupted = "interrupted"      // the agent died or was stopped; does not count as an attempt
	ReasonAborted     = "aborted"          // by command
	ReasonRadioDown   = "radio-down"       // the emulated radio could not be reached
	ReasonElsewhere   = "source-elsewhere" // a flow that starts on another node, which cannot be reached
	ReasonSourceDown  = "source-down"      // the node on which a flow starts failed to carry it
)

// progress is what a journal says has happened already.
type progress struct {
	sheetHash  string // of run-started; empty when the journal is new
	provenance bool
	ended      *journal.RunEnded
	trials     map[int]*trialPast
	open       *journal.AttemptStarted // without attempt-ended
	restarts   map[string]int          // by treatment
}

type trialPast struct {
	attempts int // the highest number given
	counted  int // ended and not interrupted
	last     journal.Verdict
	ended    bool
}

func (p *progress) trial(i int) *trialPast {
	t := p.trials[i]
	if t == nil {
		t = &trialPast{}
		p.trials[i] = t
	}
	return t
}

func replay(j Journal) (*progress, error) {
	p := &progress{trials: map[int]*trialPast{}, restarts: map[string]int{}}
	err := j.Records(func(r journal.Record) error {
		if err := p.take(r); err != nil {
			return fmt.Errorf("journal record %d (%s): %w", r.Seq, r.Type, err)
		}
		return nil
	})
	return p, err
}

func (p *progress) take(r journal.Record) error {
	switch r.Type {
	case journal.TypeRunStarted:
		var b journal.RunStarted
		if err := json.Unmarshal(r.Body, &b); err != nil {
			return err
		}
		p.sheetHash = b.SheetHash
	case journal.TypeProvenance:
		p.provenance = true
	case journal.TypeRunEnded:
		p.ended = &journal.RunEnded{}
		return json.Unmarshal(r.Body, p.ended)
	case journal.TypeListenerReady:
		var b journal.Listener
		if err := json.Unmarshal(r.Body, &b); err != nil {
			return err
		}
		p.restarts[b.Treatment] = b.Restarts + 1
	case journal.TypeAttemptStarted:
		var b journal.AttemptStarted
		if err := json.Unmarshal(r.Body, &b); err != nil {
			return err
		}
		p.open = &b
		t := p.trial(b.Trial)
		t.attempts = max(t.attempts, b.Attempt)
	case journal.TypeAttemptEnded:
		var b journal.AttemptEnded
		if err := json.Unmarshal(r.Body, &b); err != nil {
			return err
		}
		p.open = nil
		p.trial(b.Trial).close(b.Verdict, b.Reason)
	case journal.TypeTrialEnded:
		var b journal.TrialEnded
		if err := json.Unmarshal(r.Body, &b); err != nil {
			return err
		}
		p.trial(b.Trial).ended = true
	}
	return nil
}

func (t *trialPast) close(v journal.Verdict, reason string) {
	if reason == ReasonInterrupted {
		return
	}
	t.counted++
	t.last = v
}

// over says whether no further attempt follows.
func (t *trialPast) over(limit int) bool {
	return t.counted > 0 && (t.last == journal.Succeeded || t.counted >= limit)
}
