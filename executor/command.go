package executor

import (
	"context"

	"linktrial/executor/journal"
)

// applyAll applies every command that the journal does not have yet, and ends
// the trials that are skipped. more is closed when there are further commands. Without
// [Commands] it does nothing.
func (p *progress) applyAll() (more <-chan struct{}, err error) {
	if p.node.Commands == nil {
		return nil, nil
	}
	all, more := p.node.Commands.Given()
	for _, c := range all {
		if p.state.Applied[c.ID] {
			continue
		}
		if err := p.apply(c); err != nil {
			return nil, err
		}
	}
	for i := range p.node.sheet.Trials {
		if t := p.state.Trial(i); t.Skip {
			if err := p.endTrial(i); err != nil {
				return nil, err
			}
		}
	}
	return more, nil
}

// applySkip applies a command to skip a trial that is under way; all others
// wait for the next boundary.
func (p *progress) applySkip(trial int) error {
	if p.node.Commands == nil {
		return nil
	}
	all, _ := p.node.Commands.Given()
	if c, ok := p.skipOf(trial, all); ok {
		return p.apply(c)
	}
	return nil
}

// more is closed when there are further commands; nil: there never are.
func (p *progress) more() <-chan struct{} {
	if p.node.Commands == nil {
		return nil
	}
	_, more := p.node.Commands.Given()
	return more
}

func (p *progress) skipOf(trial int, all []Command) (Command, bool) {
	for _, c := range all {
		if c.Kind == journal.CommandSkip && c.Trial == trial && !p.state.Applied[c.ID] {
			return c, true
		}
	}
	return Command{}, false
}

// watchForSkip waits for a command to skip the trial until over is closed, and
// cancels the attempt by it. While it runs, nothing else applies commands.
func (p *progress) watchForSkip(over <-chan struct{}, trial int, cancel context.CancelCauseFunc) error {
	for {
		all, more := p.node.Commands.Given()
		if c, ok := p.skipOf(trial, all); ok {
			err := p.apply(c)
			cancel(errSkipped)
			return err
		}
		select {
		case <-more:
		case <-over:
			return nil
		}
	}
}
