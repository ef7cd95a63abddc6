package campaign

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/jackc/pgx/v5"

	"linktrial/orchestrator/store"
	"linktrial/orchestrator/store/dbsqlc"
)

// OrderKind says what a person orders of a run. Closed list.
type CommandKind string

// The kinds; pause, resume, skip and repeat are for the leading agent.
const (
	Pause   CommandKind = "pause"   // hold the run at its next trial boundary
	Resume  CommandKind = "resume"  // let it go on
	Skip    CommandKind = "skip"    // end a trial without a further attempt
	Repeat  CommandKind = "repeat"  // one more attempt of a trial that has ended
	Abort   CommandKind = "abort"   // end the run; the campaign's others go on
	Release CommandKind = "release" // the nodes stand where the topology has them
)

// Order is one order of a person to a run.
type Command struct {
	ID     string // empty in a new one
	Kind   CommandKind
	Trial  int    // of skip and repeat
	Reason string // of an abort
	By     string // who says so; may be empty
}

// ErrRefused reports an order that cannot be obeyed, or a mark that makes no
// sense, as things are; the text says why.
var ErrRefused = errors.New("refused")

// ErrNoTrial reports a trial or an attempt that the run does not have.
var ErrNoTrial = errors.New("no such trial")

// ErrBadText reports a reason or a name that cannot be kept.
var ErrBadText = errors.New("is not taken")

// maxText bounds what people say, in bytes.
const maxText = 1000

func checkText(what, s string) error {
	if len(s) > maxText {
		return fmt.Errorf("%s of %d bytes %w, at most %d are", what, len(s), ErrBadText, maxText)
	}
	if i := strings.IndexFunc(s, unicode.IsControl); i >= 0 {
		return fmt.Errorf("%s with a control character at byte %d %w, expected one line of text", what, i, ErrBadText)
	}
	return nil
}

type refusal struct {
	text string
	kind error
}

func (r *refusal) Error() string { return r.text }
func (r *refusal) Unwrap() error { return r.kind }

func refuse(format string, args ...any) error {
	return &refusal{fmt.Sprintf(format, args...), ErrRefused}
}

func noTrial(format string, args ...any) error {
	return &refusal{fmt.Sprintf(format, args...), ErrNoTrial}
}

// Give stores an order, and what leads to its being obeyed, or refuses it. An
// order that was given already and not dealt with since is not given again.
func (e *Engine) Give(ctx context.Context, run string, o Command) error {
	if err := errors.Join(checkText("a reason", o.Reason), checkText("a name", o.By)); err != nil {
		return fmt.Errorf("%s run %s: %w", o.Kind, run, err)
	}
	given := false
	err := e.cfg.Store.InTx(ctx, func(q *dbsqlc.Queries) error {
		r, err := q.RunForCommand(ctx, run)
		if errors.Is(err, pgx.ErrNoRows) {
			return fmt.Errorf("run %q: %w", run, store.ErrNotFound)
		} else if err != nil {
			return err
		}
		earlier, err := q.CommandStates(ctx, run)
		if err != nil {
			return err
		}
		t, err := e.may(ctx, q, &r, o, earlier)
		if err != nil || !t {
			return err
		}
		given = true
		p := dbsqlc.InsertCommandParams{ID: newID(), RunID: run, Kind: string(o.Kind), Reason: o.Reason, GivenBy: o.By}
		if o.Kind == Skip || o.Kind == Repeat {
			trial := int32(o.Trial)
			p.Trial = &trial
		}
		if err := q.InsertCommand(ctx, p); err != nil {
			return err
		}
		if o.Kind == Abort {
			_, err := q.AbortRun(ctx, dbsqlc.AbortRunParams{ID: run, Reason: o.Reason})
			return err
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("%s run %s: %w", o.Kind, run, err)
	}
	if given {
		e.log.Info("order is given", "run", run, "kind", o.Kind, "trial", o.Trial, "by", o.By, "reason", o.Reason)
		e.touch(run)
	}
	return nil
}

// may says whether an order is to be stored: false where it holds already.
func (e *Engine) may(ctx context.Context, q *dbsqlc.Queries, r *dbsqlc.RunForCommandRow, o Command, earlier []dbsqlc.CommandState) (bool, error) {
	state := State(r.State)
	switch {
	case r.EndedAt != nil:
		return false, refuse("it has ended (%s)", r.State)
	case r.AbortReason != nil:
		if o.Kind == Abort {
			return false, nil
		}
		return false, refuse("it is being aborted (%s)", *r.AbortReason)
	case state == Collecting:
		return false, refuse("all its trials have ended, and only journals are still on their way")
	}
	if o.Kind == Abort {
		return true, nil
	}
	if o.Kind == Release {
		if state != Waiting {
			return false, refuse("it does not wait for nodes to be moved (%s)", r.State)
		}
		return true, nil
	}
	virtual, err := e.virtual(ctx, q, r.ID)
	if err != nil {
		return false, err
	}
	if virtual {
		return false, refuse("its trials run in virtual time, where nobody can order anything but an abort")
	}
	if o.Kind == Pause || o.Kind == Resume {
		return mayHold(o.Kind, earlier)
	}
	return mayChange(ctx, q, r, o, earlier)
}

// mayHold decides on pause and resume, of which the newest one counts.
func mayHold(kind CommandKind, earlier []dbsqlc.CommandState) (bool, error) {
	for _, x := range slices.Backward(earlier) {
		switch {
		case CommandKind(x.Kind) == Pause:
			return kind == Resume, nil
		case CommandKind(x.Kind) == Resume && kind == Resume && open(&x):
			return false, nil
		case CommandKind(x.Kind) == Resume:
			if kind == Resume {
				return false, refuse("it is not paused")
			}
			return true, nil
		}
	}
	if kind == Resume {
		return false, refuse("it is not paused")
	}
	return true, nil
}

// mayChange decides on skip and repeat.
func mayChange(ctx context.Context, q *dbsqlc.Queries, r *dbsqlc.RunForCommandRow, o Command, earlier []dbsqlc.CommandState) (bool, error) {
	if o.Trial < 0 || o.Trial >= int(r.Trials) {
		return false, noTrial("it has no trial %d; its trials are 0 to %d", o.Trial, r.Trials-1)
	}
	verdict, err := q.TrialVerdict(ctx, dbsqlc.TrialVerdictParams{RunID: r.ID, Trial: int32(o.Trial)})
	if err != nil {
		return false, err
	}
	switch {
	case o.Kind == Skip && verdict != nil:
		return false, refuse("trial %d has ended already (%s)", o.Trial, *verdict)
	case o.Kind == Repeat && verdict == nil:
		return false, refuse("trial %d has not ended yet", o.Trial)
	}
	given := slices.ContainsFunc(earlier, func(x dbsqlc.CommandState) bool {
		return CommandKind(x.Kind) == o.Kind && x.Trial != nil && int(*x.Trial) == o.Trial && open(&x)
	})
	return !given, nil
}

// open says that the leading agent has not dealt with the order.
func open(x *dbsqlc.CommandState) bool { return x.AppliedAt == nil }

// virtual says whether the run's trials are those of the virtual-time lab.
func (e *Engine) virtual(ctx context.Context, q *dbsqlc.Queries, run string) (bool, error) {
	parts, err := q.RunNodes(ctx, run)
	if err != nil {
		return false, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, p := range parts {
		if n := e.nodes[p.Node]; n != nil && n.Virtual {
			return true, nil
		}
	}
	return false, nil
}

// Mark is a person's word on the figure of an attempt.
type Mark struct {
	Trial, Attempt int
	Invalid        bool   // false: earlier words are taken back
	Reason         string // where invalid
	By             string
}

// ErrNoReason reports a mark without a reason.
var ErrNoReason = errors.New("a mark needs a reason")

// MarkAttempt stores a mark, or refuses it. One that holds already changes
// nothing. It works on runs that have ended too.
func (e *Engine) MarkAttempt(ctx context.Context, run string, m Mark) error {
	if err := errors.Join(checkText("a reason", m.Reason), checkText("a name", m.By)); err != nil {
		return fmt.Errorf("mark in run %s: %w", run, err)
	}
	marked := false
	err := e.cfg.Store.InTx(ctx, func(q *dbsqlc.Queries) error {
		if m.Invalid && m.Reason == "" {
			return ErrNoReason
		}
		if _, err := q.RunForCommand(ctx, run); errors.Is(err, pgx.ErrNoRows) {
			return fmt.Errorf("run %q: %w", run, store.ErrNotFound)
		} else if err != nil {
			return err
		}
		trial, attempt := int32(m.Trial), int32(m.Attempt)
		verdict, err := q.AttemptVerdict(ctx, dbsqlc.AttemptVerdictParams{RunID: run, Trial: trial, Attempt: attempt})
		if errors.Is(err, pgx.ErrNoRows) {
			return noTrial("it has no attempt %d of trial %d", m.Attempt, m.Trial)
		} else if err != nil {
			return err
		}
		if verdict == nil {
			return refuse("attempt %d of trial %d has not ended yet", m.Attempt, m.Trial)
		}
		marks, err := store.ReadMarks(ctx, q, run)
		if err != nil {
			return err
		}
		old := marks.Of(trial, attempt)
		switch {
		case !m.Invalid && old == nil:
			return refuse("attempt %d of trial %d is not marked", m.Attempt, m.Trial)
		case m.Invalid && old != nil && old.Reason == m.Reason:
			return nil
		}
		marked = true
		return q.InsertMark(ctx, dbsqlc.InsertMarkParams{ID: newID(), RunID: run, Trial: trial, Attempt: attempt, Invalid: m.Invalid, Reason: m.Reason, GivenBy: m.By})
	})
	if err != nil {
		return fmt.Errorf("mark in run %s: %w", run, err)
	}
	if marked {
		e.log.Info("attempt is marked", "run", run, "trial", m.Trial, "attempt", m.Attempt, "invalid", m.Invalid, "by", m.By, "reason", m.Reason)
		e.touch(run)
	}
	return nil
}

// touch tells everybody that a run's tables have changed.
func (e *Engine) touch(run string) {
	e.mu.Lock()
	e.versions[run]++
	e.notifyLocked()
	e.mu.Unlock()
	e.wake()
}
