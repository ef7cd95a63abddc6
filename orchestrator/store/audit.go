package store

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/jackc/pgx/v5"

	"linktrial/internal/auditchain"
	"linktrial/internal/signature"
	"linktrial/orchestrator/store/storedb"
)

// AppendAudit adds an entry to the end of the audit log. It gives it its number and its
// hash, and cuts its time to microseconds, which is what the database keeps. It returns
// the entry as it is stored, and the number and hash of the one before it.
func (s *Store) AppendAudit(ctx context.Context, e auditchain.Entry) (stored, before auditchain.Entry, err error) {
	err = s.InTx(ctx, func(tx Conn) error {
		q := tx.q
		if err := q.LockAudit(ctx); err != nil {
			return err
		}
		last, err := q.LastAudit(ctx)
		if err != nil && !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		before = auditchain.Entry{ID: last.ID}
		copy(before.Hash[:], last.Hash) // of no entry it is zero
		e.ID, e.At = last.ID+1, e.At.UTC().Truncate(time.Microsecond)
		e.Hash = e.Over(before.Hash)
		return q.InsertAudit(ctx, storedb.InsertAuditParams{ID: e.ID, At: e.At, UserName: e.User, Via: e.Via, Address: e.Address, Action: e.Action, Detail: e.Detail, Outcome: e.Outcome, Message: e.Message, Hash: e.Hash[:]})
	})
	if err != nil {
		return auditchain.Entry{}, auditchain.Entry{}, fmt.Errorf("audit log: %w", err)
	}
	return e, before, nil
}

// AddAuditHead keeps a signed head.
func (s *Store) AddAuditHead(ctx context.Context, h auditchain.Head) error {
	err := s.q.InsertAuditHead(ctx, storedb.InsertAuditHeadParams{Entry: h.Entry, Hash: h.Hash[:], SignedAt: h.Signed, KeyID: h.Signature.KeyID, Signature: h.Signature.Bytes})
	if err != nil {
		return fmt.Errorf("head of the audit log: %w", err)
	}
	return nil
}

// AuditPage is a part of the audit log, oldest first.
type AuditPage struct {
	Entries []auditchain.Entry
	// Heads are of the entries; after the last ones also of entries that are not there.
	Heads []auditchain.Head
	More  bool
}

// AuditPageAfter returns at most that many entries after the one with the number.
func (s *Store) AuditPageAfter(ctx context.Context, after int64, most int) (*AuditPage, error) {
	var page *AuditPage
	err := s.Snapshot(ctx, func(tx Conn) (err error) {
		page, err = auditPageAfter(ctx, tx.q, after, most)
		return err
	})
	return page, err
}

func auditPageAfter(ctx context.Context, q *storedb.Queries, after int64, most int) (*AuditPage, error) {
	rows, err := q.AuditAfter(ctx, storedb.AuditAfterParams{After: after, Most: int32(most + 1)})
	if err != nil {
		return nil, fmt.Errorf("audit log: %w", err)
	}
	page := &AuditPage{}
	until := int64(math.MaxInt64)
	if page.More = len(rows) > most; page.More {
		rows = rows[:most]
		until = rows[most-1].ID
	}
	for _, r := range rows {
		e := auditchain.Entry{ID: r.ID, At: r.At.UTC(), User: r.UserName, Via: r.Via, Address: r.Address, Action: r.Action, Detail: r.Detail, Outcome: r.Outcome, Message: r.Message}
		copy(e.Hash[:], r.Hash)
		page.Entries = append(page.Entries, e)
	}
	heads, err := q.AuditHeads(ctx, storedb.AuditHeadsParams{After: after, Until: until})
	if err != nil {
		return nil, fmt.Errorf("heads of the audit log: %w", err)
	}
	for _, r := range heads {
		h := auditchain.Head{Entry: r.Entry, Signed: r.SignedAt, Signature: signature.Signature{KeyID: r.KeyID, Bytes: r.Signature}}
		copy(h.Hash[:], r.Hash)
		page.Heads = append(page.Heads, h)
	}
	return page, nil
}

// CheckAudit passes the whole audit log of one moment to a check.
func (s *Store) CheckAudit(ctx context.Context, c *auditchain.Check) error {
	const most = 1000
	return s.Snapshot(ctx, func(tx Conn) error {
		q := tx.q
		for more, after := true, int64(0); more; {
			page, err := auditPageAfter(ctx, q, after, most)
			if err != nil {
				return err
			}
			if err := auditchain.Merge(page.Entries, page.Heads, c.Line); err != nil {
				return err
			}
			if more = page.More; more {
				after = page.Entries[len(page.Entries)-1].ID
			}
		}
		return c.End()
	})
}
