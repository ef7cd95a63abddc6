package campaign

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/jackc/pgx/v5"

	"linktrial/internal/runcommand"
	"linktrial/orchestrator/campaign/campaigndb"
	"linktrial/orchestrator/store"
)

// Command is an instruction of a person to a run.
type Command struct {
	ID     string // empty in a new one
	Kind   string // one of [runcommand]'s, but exclude and include, which are marks
	Trial  int    // of skip and repeat
	Reason string // of an abort
	By     string // who gives it; may be empty
}

// ErrRefused reports a command that cannot be applied, or a mark that makes no
// sense, in the state that the run is in; the text says why.
var ErrRefused = errors.New("refused")

// ErrNoTrial reports a trial or an attempt that the run does not have.
var ErrNoTrial = errors.New("no such trial")

// ErrBadText reports a reason or a name that cannot be stored.
var ErrBadText = errors.New("is not accepted")

// maxText bounds a reason and a name, in bytes.
const maxText = 1000

func checkText(what, s string) error {
	if len(s) > maxText {
		return fmt.Errorf("%s of %d bytes %w: expected at most %d", what, len(s), ErrBadText, maxText)
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

// Submit stores a command, from where the leading agent gets it, or refuses it
// with [ErrRefused]. A command that is the same as one that has not been applied
// yet is not stored again.
func (e *Engine) Submit(ctx context.Context, run string, c Command) error {
	if err := errors.Join(checkText("a reason", c.Reason), checkText("a name", c.By)); err != nil {
		return fmt.Errorf("%s run %s: %w", c.Kind, run, err)
	}
	stored := false
	err := e.cfg.Store.InTx(ctx, func(tx store.Conn) error {
		q := campaigndb.New(tx)
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
		isNew, err := e.admit(ctx, tx, &r, c, earlier)
		if err != nil || !isNew {
			return err
		}
		stored = true
		p := campaigndb.InsertCommandParams{ID: newID(), RunID: run, Kind: c.Kind, Reason: c.Reason, GivenBy: c.By}
		if runcommand.Of(c.Kind).Trial {
			trial := int32(c.Trial)
			p.Trial = &trial
		}
		if err := q.InsertCommand(ctx, p); err != nil {
			return err
		}
		if c.Kind == runcommand.Abort {
			_, err := q.AbortRun(ctx, campaigndb.AbortRunParams{ID: run, Reason: c.Reason})
			return err
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("%s run %s: %w", c.Kind, run, err)
	}
	if stored {
		e.cfg.Logger.Info("command is stored", "run", run, "kind", c.Kind, "trial", c.Trial, "by", c.By, "reason", c.Reason)
		e.tablesChanged(run)
	}
	return nil
}

// admit refuses a command that does not fit the run's state. It returns false
// where the command would change nothing and is not to be stored.
func (e *Engine) admit(ctx context.Context, tx store.Conn, r *campaigndb.RunForCommandRow, c Command, earlier []CommandState) (bool, error) {
	state := State(r.State)
	switch {
	case r.EndedAt != nil:
		return false, refuse("it has ended (%s)", r.State)
	case r.AbortReason != nil:
		if c.Kind == runcommand.Abort {
			return false, nil
		}
		return false, refuse("it is being aborted (%s)", *r.AbortReason)
	case state == Collecting:
		return false, refuse("all its trials have ended, and only journals are still on their way")
	}
	if c.Kind == runcommand.Abort {
		return true, nil
	}
	if c.Kind == runcommand.Continue {
		if state != Waiting {
			return false, refuse("it does not wait for nodes to be moved (%s)", r.State)
		}
		return true, nil
	}
	virtual, err := e.isVirtual(ctx, tx, r.ID)
	if err != nil {
		return false, err
	}
	if virtual {
		return false, refuse("its trials run in virtual time, where abort is the only command")
	}
	if c.Kind == runcommand.Pause || c.Kind == runcommand.Resume {
		o, err := tx.RunOverview(ctx, r.ID)
		if err != nil {
			return false, err
		}
		return admitHold(c.Kind, earlier, o.PauseReason != "")
	}
	return admitTrial(ctx, campaigndb.New(tx), r, c, earlier)
}

// admitHold is admit for pause and resume, of which the newest one counts; self: the
// leading node has paused the run by itself since then.
func admitHold(kind string, earlier []CommandState, self bool) (bool, error) {
	if self && kind == runcommand.Resume {
		same := slices.ContainsFunc(earlier, func(x CommandState) bool { return x.Kind == runcommand.Resume && pending(&x) })
		return !same, nil
	}
	for _, x := range slices.Backward(earlier) {
		switch {
		case x.Kind == runcommand.Pause:
			return kind == runcommand.Resume, nil
		case x.Kind == runcommand.Resume && kind == runcommand.Resume && pending(&x):
			return false, nil
		case x.Kind == runcommand.Resume:
			if kind == runcommand.Resume {
				return false, refuse("it is not paused")
			}
			return true, nil
		}
	}
	if kind == runcommand.Resume {
		return false, refuse("it is not paused")
	}
	return true, nil
}

// admitTrial is admit for skip and repeat.
func admitTrial(ctx context.Context, q *campaigndb.Queries, r *campaigndb.RunForCommandRow, c Command, earlier []CommandState) (bool, error) {
	if c.Trial < 0 || c.Trial >= int(r.Trials) {
		return false, noTrial("it has no trial %d; its trials are 0 to %d", c.Trial, r.Trials-1)
	}
	t, err := q.TrialVerdict(ctx, campaigndb.TrialVerdictParams{RunID: r.ID, Trial: int32(c.Trial)})
	if err != nil {
		return false, err
	}
	switch {
	case c.Kind == runcommand.Skip && t.Verdict != nil:
		return false, refuse("trial %d has ended already (%s)", c.Trial, outcome(&t))
	case c.Kind == runcommand.Repeat && t.Verdict == nil:
		return false, refuse("trial %d has not ended yet", c.Trial)
	case c.Kind == runcommand.Repeat && t.NotNeeded:
		return false, refuse("trial %d is not needed: the plan's rule to stop by has ended it", c.Trial)
	}
	same := slices.ContainsFunc(earlier, func(x CommandState) bool {
		return x.Kind == c.Kind && x.Trial != nil && int(*x.Trial) == c.Trial && pending(&x)
	})
	return !same, nil
}

// outcome is how a trial has ended.
func outcome(t *campaigndb.TrialVerdictRow) string {
	if t.NotNeeded {
		return "not needed"
	}
	return *t.Verdict
}

// CommandState is a command with what became of it.
type CommandState = campaigndb.CommandState

// Commands reads the commands of a run, oldest first.
func Commands(ctx context.Context, c store.Conn, run string) ([]CommandState, error) {
	return campaigndb.New(c).CommandStates(ctx, run)
}

// pending reports whether the leading agent has not answered the command yet.
func pending(x *CommandState) bool { return x.AppliedAt == nil }

// isVirtual reports whether the run is one of the virtual-time lab.
func (e *Engine) isVirtual(ctx context.Context, c store.Conn, run string) (bool, error) {
	rows, err := c.RunNodes(ctx, run)
	if err != nil {
		return false, err
	}
	for _, row := range rows {
		if n, _ := e.Nodes.Get(row.Node); n.Virtual {
			return true, nil
		}
	}
	return false, nil
}
