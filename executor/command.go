package executor

import (
	"context"

	"linktrial/executor/journal"
)

// commandReader applies people's commands to a run's progress. Without
// [Commands] it does nothing.
type commandReader struct {
	commands Commands
	progress *progress
}

// applyAll applies every command that the journal does not have yet, and ends
// the trials that are skipped. more is closed when there are further commands.
func (r *commandReader) applyAll() (more <-chan struct{}, err error) {
	if r.commands == nil {
		return nil, nil
	}
	all, more := r.commands.Given()
	for _, c := range all {
		if r.progress.state.Applied[c.ID] {
			continue
		}
		if err := r.progress.apply(c); err != nil {
			return nil, err
		}
	}
	for i := range r.progress.node.sheet.Trials {
		if t := r.progress.state.Trial(i); t.Skip {
			if err := r.progress.endTrial(i); err != nil {
				return nil, err
			}
		}
	}
	return more, nil
}

// applySkip applies a command to skip a trial that is under way; all others
// wait for the next boundary.
func (r *commandReader) applySkip(trial int) error {
	if r.commands == nil {
		return nil
	}
	all, _ := r.commands.Given()
	if c, ok := r.skipOf(trial, all); ok {
		return r.progress.apply(c)
	}
	return nil
}

// more is closed when there are further commands; nil: there never are.
func (r *commandReader) more() <-chan struct{} {
	if r.commands == nil {
		return nil
	}
	_, more := r.commands.Given()
	return more
}

func (r *commandReader) skipOf(trial int, all []Command) (Command, bool) {
	for _, c := range all {
		if c.Kind == journal.CommandSkip && c.Trial == trial && !r.progress.state.Applied[c.ID] {
			return c, true
		}
	}
	return Command{}, false
}

// watchForSkip waits for a command to skip the trial until over is closed, and
// cancels the attempt by it. While it runs, nothing else applies commands.
func (r *commandReader) watchForSkip(over <-chan struct{}, trial int, cancel context.CancelCauseFunc) error {
	for {
		all, more := r.commands.Given()
		if c, ok := r.skipOf(trial, all); ok {
			err := r.progress.apply(c)
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
