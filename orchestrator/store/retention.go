package store

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
)

// Dropped is what [Store.DropSamples] took away.
type Dropped struct {
	Runs   int   // runs whose samples are gone
	Chunks int   // days of a hypertable that were dropped whole
	Rows   int64 // samples that were deleted one by one, on a plain table all
}

// DropSamples takes away the samples of runs that have ended before a moment, by the
// orchestrator's clock, and took their last one before it by the nodes' clocks, which may
// be wrong. Attempts and their values stay: only what is drawn over
// time goes, and of the journals as the nodes wrote them the records with samples. Where samples are a TimescaleDB hypertable, days that hold nothing
// else are dropped whole.
func (s *Store) DropSamples(ctx context.Context, before time.Time) (d Dropped, err error) {
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		var runs []string
		// The order is that of whoever else locks several of these rows.
		rows, err := tx.Query(ctx, `SELECT p.run_id FROM sample_spans p JOIN runs r ON r.id = p.run_id
			WHERE p.last_at < $1 AND r.ended_at < $1 AND p.dropped_at IS NULL ORDER BY p.run_id FOR UPDATE OF p`, before)
		if err != nil {
			return err
		}
		if runs, err = pgx.CollectRows(rows, pgx.RowTo[string]); err != nil || len(runs) == 0 {
			return err
		}
		var hypertable bool
		if err := tx.QueryRow(ctx, `SELECT to_regclass('timescaledb_information.hypertables') IS NOT NULL`).Scan(&hypertable); err != nil {
			return err
		}
		if hypertable {
			if err := tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM timescaledb_information.hypertables WHERE hypertable_name = 'samples')`).Scan(&hypertable); err != nil {
				return err
			}
		}
		if hypertable {
			// Whole days before anything that must stay.
			var function bool // of a store that does not own the table
			if err := tx.QueryRow(ctx, `SELECT to_regproc('drop_sample_chunks') IS NOT NULL`).Scan(&function); err != nil {
				return err
			}
			drop := `SELECT count(*) FROM drop_chunks('samples', older_than => (%s))`
			if function {
				drop = `SELECT drop_sample_chunks((%s))`
			}
			if err := tx.QueryRow(ctx, fmt.Sprintf(drop, `SELECT least($1, min(p.first_at)) FROM sample_spans p WHERE p.dropped_at IS NULL AND NOT p.run_id = ANY ($2)`), before, runs).Scan(&d.Chunks); err != nil {
				return fmt.Errorf("drop days: %w", err)
			}
		}
		deleted, err := tx.Exec(ctx, `DELETE FROM samples WHERE run_id = ANY ($1)
			AND at >= (SELECT min(first_at) FROM sample_spans WHERE run_id = ANY ($1)) AND at < $2`, runs, before)
		if err != nil {
			return err
		}
		d.Runs, d.Rows = len(runs), deleted.RowsAffected()
		if _, err := tx.Exec(ctx, `DELETE FROM journal_pages WHERE samples AND run_id = ANY ($1)`, runs); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `UPDATE sample_spans SET dropped_at = now() WHERE run_id = ANY ($1)`, runs)
		return err
	})
	if err != nil {
		return Dropped{}, fmt.Errorf("drop old samples: %w", err)
	}
	return d, nil
}

// retainEvery is how often [Store.Retain] looks.
const retainEvery = 6 * time.Hour

// Retain drops the samples of runs that ended longer ago than keep, now and from
// time to time, until ctx ends.
func (s *Store) Retain(ctx context.Context, keep time.Duration, log *slog.Logger) {
	for {
		d, err := s.DropSamples(ctx, time.Now().Add(-keep))
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			log.Error("old samples could not be dropped", "error", err)
		case d.Runs > 0:
			log.Info("old samples were dropped", "runs", d.Runs, "days", d.Chunks, "rows", d.Rows)
		}
		select {
		case <-time.After(retainEvery):
		case <-ctx.Done():
			return
		}
	}
}
