package store

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"linktrial/internal/backoff"
)

// Unwritable is since when a database that answers takes no changes, and why, as the
// rest of a sentence whose subject is the database.
type Unwritable struct {
	Since time.Time
	Why   string
}

// whyUnwritable has what each SQLSTATE means (PostgreSQL documentation, appendix A).
var whyUnwritable = map[string]string{
	"53100": "has no room left on its disk",
	"25006": "is set to read-only and takes no changes",
	"58030": "cannot use its disk, which returns errors",
}

// WhyUnwritable says what an error means of a database that answers and takes no
// changes; empty: it means something else.
func WhyUnwritable(err error) string {
	if refused := (*pgconn.PgError)(nil); errors.As(err, &refused) {
		return whyUnwritable[refused.Code]
	}
	return ""
}

// writes keeps whether the database takes changes: every statement that it refuses for
// that reason is noted, and from then on it is asked until it takes them again. What
// succeeds meanwhile proves nothing, since some changes need no room.
type writes struct {
	mu      sync.Mutex
	current *Unwritable   // nil: nothing is wrong
	noted   chan struct{} // has an element since a statement was refused
}

func newWrites() *writes { return &writes{noted: make(chan struct{}, 1)} }

// note notes how a statement ended.
func (w *writes) note(err error) {
	why := WhyUnwritable(err)
	if why == "" {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.current == nil {
		w.current = &Unwritable{Since: time.Now(), Why: why}
	} else if w.current.Why != why {
		w.current = &Unwritable{Since: w.current.Since, Why: why}
	}
	select {
	case w.noted <- struct{}{}:
	default:
	}
}

// over notes that the database takes changes, and returns since when it had not.
func (w *writes) over() *Unwritable {
	w.mu.Lock()
	defer w.mu.Unlock()
	before := w.current
	w.current = nil
	return before
}

// Unwritable returns since when the database takes no changes, and why; nil: it does, or
// does not answer at all.
func (s *Store) Unwritable() *Unwritable {
	s.writes.mu.Lock()
	defer s.writes.mu.Unlock()
	return s.writes.current
}

// askWritesEvery is how often a database that takes no changes is asked again.
const askWritesEvery = time.Second

// WatchWrites asks a database that takes no changes until it does, so that
// [Store.Unwritable] is right also while nobody wants to store anything. It blocks until
// ctx ends.
func (s *Store) WatchWrites(ctx context.Context, log *slog.Logger) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.writes.noted:
		}
		u := s.Unwritable()
		if u == nil {
			continue // it was noted before the answer that ended it
		}
		log.Error("the database takes no changes; it is asked until it does", "reason", u.Why)
		for !s.takesChanges(ctx) {
			if !backoff.Sleep(ctx, askWritesEvery) {
				return
			}
		}
		u = s.writes.over()
		log.Info("the database takes changes again", "seconds", time.Since(u.Since).Seconds())
	}
}

// takesChanges reports whether the database takes changes that need room: some pages of
// a table that goes with the transaction.
func (s *Store) takesChanges(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	tx, err := s.pool.Begin(ctx)
	if err != nil {
		return false
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }() // nothing of it is to stay
	if _, err = tx.Exec(ctx, "CREATE TEMPORARY TABLE linktrial_room (b text)"); err == nil {
		_, err = tx.Exec(ctx, "INSERT INTO linktrial_room SELECT repeat('x', 1800) FROM generate_series(1, 32)")
	}
	// One that does not let this role try is taken to be well until it refuses something.
	const insufficientPrivilege = "42501"
	refused := (*pgconn.PgError)(nil)
	return err == nil || errors.As(err, &refused) && refused.Code == insufficientPrivilege
}

// The methods by which pgx reports how statements ended.

func (w *writes) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	return ctx
}

func (w *writes) TraceQueryEnd(_ context.Context, _ *pgx.Conn, d pgx.TraceQueryEndData) {
	w.note(d.Err)
}

func (w *writes) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	return ctx
}

func (w *writes) TraceBatchQuery(_ context.Context, _ *pgx.Conn, d pgx.TraceBatchQueryData) {
	w.note(d.Err)
}

func (w *writes) TraceBatchEnd(_ context.Context, _ *pgx.Conn, d pgx.TraceBatchEndData) {
	w.note(d.Err)
}

func (w *writes) TraceCopyFromStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceCopyFromStartData) context.Context {
	return ctx
}

func (w *writes) TraceCopyFromEnd(_ context.Context, _ *pgx.Conn, d pgx.TraceCopyFromEndData) {
	w.note(d.Err)
}
