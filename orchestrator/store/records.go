package store

import (
	"context"
	"fmt"
	"time"
)

// Record is one record of a journal as it is stored.
type Record struct {
	Seq    int64
	Type   string
	At     time.Time
	SHA256 []byte // of the record as it was delivered
	Body   []byte // JSON; nil where it was not asked for
}

// Bounds of a page of records. A body has up to a mebibyte, so pages with bodies end
// at a number of bytes as well.
const (
	recordsOfPage       = 10_000
	recordsWithBodies   = 256
	bytesOfRecordBodies = 2 << 20
)

// Records reads a page of a node's journal of a run, from the record after a number on:
// at least one where there is one.
func (s *Store) Records(ctx context.Context, run, node string, after int64, bodies bool) ([]Record, error) {
	body, limit := "NULL::text", recordsOfPage
	if bodies {
		body, limit = "body::text", recordsWithBodies
	}
	// Not sqlc's, which reads all rows before the first one is looked at.
	rows, err := s.pool.Query(ctx, `SELECT seq, type, at, digest, `+body+` FROM journal WHERE run_id = $1 AND node = $2 AND seq > $3 ORDER BY seq LIMIT $4`, run, node, after, limit)
	if err != nil {
		return nil, fmt.Errorf("read records: %w", err)
	}
	defer rows.Close()
	var out []Record
	size := 0
	for size < bytesOfRecordBodies && rows.Next() {
		var r Record
		var text *string
		if err := rows.Scan(&r.Seq, &r.Type, &r.At, &r.SHA256, &text); err != nil {
			return nil, fmt.Errorf("read records: %w", err)
		}
		if text != nil {
			r.Body = []byte(*text)
			size += len(r.Body)
		}
		out = append(out, r)
	}
	rows.Close()
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("read records: %w", err)
	}
	return out, nil
}
