package executor

import (
	"fmt"

	"linktrial/executor/journal"
	"linktrial/executor/replay"
	"linktrial/executor/stoprule"
)

// progress is how far the leading node is: the same in the journal and in memory.
type progress struct {
	node  *node
	state *replay.State
}

// closeInterrupted writes the terminal record of an attempt that an earlier
// start left open.
func (p *progress) closeInterrupted() error {
	o := p.state.Open
	if o == nil {
		return nil
	}
	e := journal.AttemptEnded{
		Trial: o.Trial, Attempt: o.Attempt, Iteration: o.Iteration, Treatment: o.Treatment,
		Verdict: journal.Aborted, Reason: journal.ReasonInterrupted, Message: "the agent ended while the attempt ran",
	}
	t := p.state.Trial(o.Trial)
	if t.Skip {
		e.Reason, e.Message = journal.ReasonSkipped, errSkipped.Error()
	}
	trials := p.node.sheet.Trials
	interrupted := func(i int, id string) journal.FlowResult {
		f := journal.FlowResult{Flow: i, Treatment: o.Treatment, Transfer: id, Verdict: journal.Aborted, Reason: e.Reason}
		if o.Trial >= 0 && o.Trial < len(trials) && i < len(trials[o.Trial].Carried()) {
			f.Treatment = trials[o.Trial].Carried()[i].Treatment
		}
		return f
	}
	for i, id := range o.Transfers {
		e.Flows = append(e.Flows, interrupted(i, id))
	}
	for i, id := range o.Probes {
		e.Probes = append(e.Probes, interrupted(len(o.Transfers)+i, id))
	}
	p.node.record.append(journal.TypeAttemptEnded, e)
	t.EndAttempt(&e)
	p.state.Open = nil
	return p.node.record.sync()
}

// endTrial writes a trial's terminal record.
func (p *progress) endTrial(i int) error {
	t := p.state.Trial(i)
	v, reason := t.Verdict()
	p.node.record.append(journal.TypeTrialEnded, journal.TrialEnded{Trial: i, Attempts: t.Attempts, Verdict: v, Reason: reason})
	p.state.EndTrial(i)
	return p.node.record.sync()
}

// apply makes a command durable and then brings it into effect, or rejects it.
func (p *progress) apply(c Command) error {
	r := journal.Command{ID: c.ID, Kind: c.Kind, By: c.By, Rejected: p.rejectReason(c)}
	if c.Kind == journal.CommandSkip || c.Kind == journal.CommandRepeat {
		r.Trial = &c.Trial
	}
	p.node.record.append(journal.TypeCommand, r)
	if err := p.node.record.sync(); err != nil {
		return err
	}
	p.state.Apply(&r)
	return nil
}

// pause makes the run pause without a person's command.
func (p *progress) pause(reason string) error {
	c := journal.Command{Kind: journal.CommandPause, By: journal.Self, Reason: reason}
	p.node.record.append(journal.TypeCommand, c)
	p.state.Apply(&c)
	return p.node.record.sync()
}

// notNeeded reports whether the plan's rule to stop by has ended a trial.
func (p *progress) notNeeded(trial int) bool {
	return stoprule.NotNeeded(&p.node.sheet.Trials[trial], p.state.Looks)
}

// rejectReason is why a command cannot be applied; empty where it can.
func (p *progress) rejectReason(c Command) string {
	switch c.Kind {
	case journal.CommandPause, journal.CommandResume:
		return ""
	case journal.CommandSkip, journal.CommandRepeat:
		if c.Trial < 0 || c.Trial >= len(p.node.sheet.Trials) {
			return fmt.Sprintf("the sheet has no trial %d", c.Trial)
		}
		t := p.state.Trial(c.Trial)
		switch {
		case c.Kind == journal.CommandSkip && (t.Ended || t.Skip):
			return fmt.Sprintf("trial %d had ended", c.Trial)
		case c.Kind == journal.CommandRepeat && !t.Ended:
			return fmt.Sprintf("trial %d had not ended", c.Trial)
		case c.Kind == journal.CommandRepeat && p.notNeeded(c.Trial) && t.Attempts == 0:
			return fmt.Sprintf("trial %d is not needed: the plan's rule to stop by had ended it", c.Trial)
		}
		return ""
	}
	return fmt.Sprintf("this version knows no command %q", c.Kind)
}
