package executor

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"linktrial/executor/journal"
)

// Command is an order of a person to the leading node. An abort is none of
// these: see [AbortError].
type Command struct {
	ID    string              `json:"id"`
	Kind  journal.CommandKind `json:"kind"`
	Trial int                 `json:"trial,omitempty"` // of skip and repeat
	By    string              `json:"by,omitempty"`
}

// Commands is where a run's commands come from. They are a state: all that
// were ever given, of which the journal says which were obeyed, so that none is
// lost or obeyed twice, whoever of the two is started again.
type Commands interface {
	// Given returns all commands so far, oldest first, and a channel that is
	// closed when there are more. It does not block.
	Given() (all []Command, more <-chan struct{})
}

// errSkipped as the cause of a cancelled context ends an attempt whose trial is skipped.
var errSkipped = errors.New("the trial was skipped")

// boundary obeys what was ordered, and returns when a trial may start or ctx
// has ended. An error means that the journal is unusable.
func (l *leader) boundary(ctx context.Context) error {
	more, err := l.apply()
	if err != nil || !l.past.paused {
		return err
	}
	began := l.Clock.Now()
	release := func() {}
	if l.Holding != nil {
		release = l.Holding(ctx)
	}
	for l.past.paused && err == nil && ctx.Err() == nil {
		select {
		case <-more:
			more, err = l.apply()
		case <-ctx.Done():
		}
	}
	release()
	l.paused += l.Clock.Now().Sub(began)
	return err
}

// obey takes every command that the journal does not have yet, and ends the
// trials that are skipped.
func (l *leader) apply() (more <-chan struct{}, err error) {
	if l.Commands == nil {
		return nil, nil
	}
	all, more := l.Commands.Given()
	for _, c := range all {
		if l.past.applied[c.ID] {
			continue
		}
		if err := l.command(c); err != nil {
			return nil, err
		}
	}
	for i := range l.sheet.Trials {
		if t := l.past.trial(i); t.skip {
			if err := l.endTrial(i); err != nil {
				return nil, err
			}
		}
	}
	return more, nil
}

// command makes a command durable and then brings it into effect.
func (l *leader) command(c Command) error {
	r := journal.Command{ID: c.ID, Kind: c.Kind, By: c.By, Rejected: l.rejectReason(c)}
	if c.Kind == journal.CommandSkip || c.Kind == journal.CommandRepeat {
		r.Trial = &c.Trial
	}
	l.append(journal.TypeCommand, r)
	if err := l.sync(); err != nil {
		return err
	}
	l.past.command(&r)
	return nil
}

// passOver is why a command cannot be obeyed; empty where it can.
func (l *leader) rejectReason(c Command) string {
	switch c.Kind {
	case journal.CommandPause, journal.CommandResume:
		return ""
	case journal.CommandSkip, journal.CommandRepeat:
		if c.Trial < 0 || c.Trial >= len(l.sheet.Trials) {
			return fmt.Sprintf("the sheet has no trial %d", c.Trial)
		}
		t := l.past.trial(c.Trial)
		switch {
		case c.Kind == journal.CommandSkip && (t.ended || t.skip):
			return fmt.Sprintf("trial %d had ended", c.Trial)
		case c.Kind == journal.CommandRepeat && !t.ended:
			return fmt.Sprintf("trial %d had not ended", c.Trial)
		}
		return ""
	}
	return fmt.Sprintf("this version knows no command %q", c.Kind)
}

// obeySkip obeys a command to skip a trial that is under way; all others wait
// for the next boundary.
func (l *leader) applySkip(trial int) error {
	if l.Commands == nil {
		return nil
	}
	all, _ := l.Commands.Given()
	if c, ok := l.skipOf(trial, all); ok {
		return l.command(c)
	}
	return nil
}

func (l *leader) skipOf(trial int, all []Command) (Command, bool) {
	for _, c := range all {
		if c.Kind == journal.CommandSkip && c.Trial == trial && !l.past.applied[c.ID] {
			return c, true
		}
	}
	return Command{}, false
}

// attemptUnlessSkipped is [leader.attempt], ended by a command to skip its trial.
func (l *leader) attemptUnlessSkipped(ctx context.Context, trial, n int) (journal.Verdict, string, error) {
	spec := &l.sheet.Trials[trial]
	if l.Commands == nil {
		return l.attempt(ctx, spec, n)
	}
	actx, cancel := context.WithCancelCause(ctx)
	over := make(chan struct{})
	var watching sync.WaitGroup
	var failed error
	watching.Go(func() { failed = l.watchForSkip(over, trial, cancel) })
	v, reason, err := l.attempt(actx, spec, n)
	close(over)
	watching.Wait()
	cancel(nil)
	return v, reason, errors.Join(err, failed)
}

// heed waits for a command to skip the trial until over is closed. While it
// runs, nothing else obeys commands.
func (l *leader) watchForSkip(over <-chan struct{}, trial int, cancel context.CancelCauseFunc) error {
	for {
		all, more := l.Commands.Given()
		if c, ok := l.skipOf(trial, all); ok {
			err := l.command(c)
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
