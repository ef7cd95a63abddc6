package executor

import (
	"encoding/json"
	"fmt"
	"slices"

	"linktrial/executor/journal"
)

// Reasons of the executor's own, beside the contract's codes. Closed list.
const (
	ReasonExited      = "exited"       // ended without a result or an error
	ReasonGarbage     = "garbage"      // wrote what is no event, or events out of order
	ReasonFlood       = "flood"        // wrote more than a driver may
	ReasonWrongResult = "wrong-result" // a result of another transfer or size
	ReasonNoStart     = "no-start"     // the process could not be started
	ReasonInterrupted = "interrupted"  // the agent died or was stopped; does not count as an attempt
	ReasonAborted     = "aborted"      // by command
	ReasonSkipped     = journal.ReasonSkipped
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

	applied map[string]bool // commands by their identity, those passed over too
	paused  bool            // by command
	repeats []int           // trials opened again that have not ended, oldest command first
}

type trialPast struct {
	attempts int // the highest number given
	counted  int // ended and not interrupted
	last     journal.Verdict
	ended    bool

	skip     bool // no further attempt, by command
	repeat   bool // one more attempt, by command, that has not ended
	repeated bool // that attempt has ended: no other follows by itself
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
	p := &progress{trials: map[int]*trialPast{}, restarts: map[string]int{}, applied: map[string]bool{}}
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
		p.end(b.Trial)
	case journal.TypeCommand:
		var b journal.Command
		if err := json.Unmarshal(r.Body, &b); err != nil {
			return err
		}
		if b.Trial == nil && (b.Kind == journal.CommandSkip || b.Kind == journal.CommandRepeat) {
			return fmt.Errorf("%s of no trial", b.Kind)
		}
		p.command(&b)
	}
	return nil
}

// command brings a command into effect that the journal has.
func (p *progress) command(c *journal.Command) {
	if c.ID != "" {
		p.applied[c.ID] = true
	}
	if c.Rejected != "" {
		return
	}
	switch c.Kind {
	case journal.CommandPause:
		p.paused = true
	case journal.CommandResume:
		p.paused = false
	case journal.CommandSkip:
		p.trial(*c.Trial).skip = true
	case journal.CommandRepeat:
		t := p.trial(*c.Trial)
		t.ended, t.skip, t.repeat = false, false, true
		p.repeats = append(p.repeats, *c.Trial)
	}
}

// end notes a trial's terminal record.
func (p *progress) end(trial int) {
	t := p.trial(trial)
	t.ended, t.skip, t.repeat = true, false, false
	p.repeats = slices.DeleteFunc(p.repeats, func(i int) bool { return i == trial })
}

func (t *trialPast) close(v journal.Verdict, reason string) {
	if reason == ReasonInterrupted {
		return
	}
	t.counted++
	t.last = v
	t.repeated = t.repeated || t.repeat
	t.repeat = false
}

// over says whether no further attempt follows by itself. One that was ordered
// is a single one, whatever the limit and however it ends.
func (t *trialPast) over(limit int) bool {
	switch {
	case t.skip:
		return true
	case t.repeat:
		return false
	case t.repeated:
		return true
	}
	return t.counted > 0 && (t.last == journal.Succeeded || t.counted >= limit)
}

// verdict is what the trial ends with. One that was skipped before anything
// came of it is aborted; where a repetition was taken back before it ended, or
// the command came too late to stop a success, the last attempt's stands.
func (t *trialPast) verdict() (v journal.Verdict, reason string) {
	switch {
	case !t.skip:
		return t.last, ""
	case t.repeat || t.last == journal.Succeeded:
		return t.last, ReasonSkipped
	}
	return journal.Aborted, ReasonSkipped
}
