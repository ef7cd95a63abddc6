package campaign

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"linktrial/orchestrator/campaign/campaigndb"
	"linktrial/orchestrator/store"
)

// Mark reports whether an attempt's values count; a person gives it.
type Mark struct {
	Trial, Attempt int
	Invalid        bool   // false: an earlier mark is withdrawn
	Reason         string // of an invalid one
	By             string
}

// ErrNoReason reports a mark without a reason.
var ErrNoReason = errors.New("a mark needs a reason")

// MarkAttempt stores a mark, or refuses it with [ErrRefused]. One that is there
// already changes nothing. Attempts of runs that have ended can be marked too.
func (e *Engine) MarkAttempt(ctx context.Context, run string, m Mark) error {
	if err := errors.Join(checkText("a reason", m.Reason), checkText("a name", m.By)); err != nil {
		return fmt.Errorf("mark in run %s: %w", run, err)
	}
	marked := false
	err := e.cfg.Store.InTx(ctx, func(tx store.Conn) error {
		q := campaigndb.New(tx)
		if m.Invalid && m.Reason == "" {
			return ErrNoReason
		}
		if _, err := q.RunForCommand(ctx, run); errors.Is(err, pgx.ErrNoRows) {
			return fmt.Errorf("run %q: %w", run, store.ErrNotFound)
		} else if err != nil {
			return err
		}
		trial, attempt := int32(m.Trial), int32(m.Attempt)
		verdict, err := q.AttemptVerdict(ctx, campaigndb.AttemptVerdictParams{RunID: run, Trial: trial, Attempt: attempt})
		if errors.Is(err, pgx.ErrNoRows) {
			return noTrial("it has no attempt %d of trial %d", m.Attempt, m.Trial)
		} else if err != nil {
			return err
		}
		if verdict == nil {
			return refuse("attempt %d of trial %d has not ended yet", m.Attempt, m.Trial)
		}
		marks, err := store.ReadMarks(ctx, tx, run)
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
		return q.InsertMark(ctx, campaigndb.InsertMarkParams{ID: newID(), RunID: run, Trial: trial, Attempt: attempt, Invalid: m.Invalid, Reason: m.Reason, GivenBy: m.By})
	})
	if err != nil {
		return fmt.Errorf("mark in run %s: %w", run, err)
	}
	if marked {
		e.cfg.Logger.Info("attempt is marked", "run", run, "trial", m.Trial, "attempt", m.Attempt, "invalid", m.Invalid, "by", m.By, "reason", m.Reason)
		e.tablesChanged(run)
	}
	return nil
}
