package access

import (
	"context"
	"time"

	"linktrial/orchestrator/security/access/accessdb"
	"linktrial/orchestrator/security/auditlog"
	"linktrial/orchestrator/store"
)

const (
	auditPage    = 100
	maxAuditPage = 1000
)

// AuditQuery chooses entries of the audit log; what is zero chooses all.
type AuditQuery struct {
	Before                int64 // entries older than the one with this number
	User, Action, Outcome string
	Since                 *time.Time
	Limit                 int32 // 1 to 1000; zero: 100
}

// AuditLog returns entries, newest first, and whether there are more.
func (a *Access) AuditLog(ctx context.Context, q AuditQuery) (entries []AuditEntry, more bool, err error) {
	limit := q.Limit
	switch {
	case limit == 0:
		limit = auditPage
	case limit < 0 || limit > maxAuditPage:
		return nil, false, refuse(Invalid, "limit %d, expected 1 to %d", limit, maxAuditPage)
	}
	switch q.Outcome {
	case "", outcomeDone, outcomeRefused, outcomeFailed:
	default:
		return nil, false, refuse(Invalid, "outcome %q, expected done, refused or failed", shortened(clean(q.Outcome), 40))
	}
	rows, err := a.db.Audit(ctx, accessdb.AuditParams{Before: q.Before, UserName: clean(q.User), Action: clean(q.Action), Outcome: q.Outcome, Since: q.Since, Most: limit + 1})
	if err != nil {
		return nil, false, err
	}
	if more = len(rows) > int(limit); more {
		rows = rows[:limit]
	}
	return rows, more, nil
}

// LastCheck is what the last check of the audit log found.
func (a *Access) LastCheck() auditlog.Checked { return a.audit.LastCheck() }

// ExportAudit returns the audit log oldest first, after the entry with a number; the limit
// is 1 to 1000, zero is 1000.
func (a *Access) ExportAudit(ctx context.Context, after int64, limit int32) (*store.AuditPage, error) {
	switch {
	case after < 0:
		return nil, refuse(Invalid, "after %d, expected the number of an entry", after)
	case limit == 0:
		limit = maxAuditPage
	case limit < 0 || limit > maxAuditPage:
		return nil, refuse(Invalid, "limit %d, expected 1 to %d", limit, maxAuditPage)
	}
	return a.audit.Export(ctx, after, int(limit))
}
